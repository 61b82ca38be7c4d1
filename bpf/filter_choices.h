/* filter_choices.h - what user space has chosen to be sent or only counted */
#ifndef MLEAK_BPF_FILTER_CHOICES_H
#define MLEAK_BPF_FILTER_CHOICES_H

#include "bpf/filter_sums.h"
#include "bpf/state.h"

/* By thread: is all of it sent?  Changed here, and by user space at any time. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u32); /* enum event_thread_mode */
} thread_modes SEC(".maps");

/* By process: what user space has chosen. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, EVENT_MAX_TARGETS);
	__type(key, __u32);
	__type(value, struct event_choices);
} process_choices SEC(".maps");

/* The three that follow are not static: so the verifier looks at each once and by itself, and not
 * for each number of loops that those before it may have made. */

/* Of the process @tgid, the number from 1 of the last site that has @pc; 0: none has. */
__noinline __u32 filter_last_site(__u32 tgid, __u64 pc)
{
	const struct event_choices *choices = bpf_map_lookup_elem(&process_choices, &tgid);

	if (!choices)
		return 0;
#pragma clang loop unroll(disable)
	for (__u32 i = EVENT_MAX_SITES; i; i--)
		if (i <= choices->nr &&
		    pc - choices->sites[i - 1].start < choices->sites[i - 1].size)
			return i;
	return 0;
}

/* How far above the stack pointer is the return address of the function that @pc is in, if it is a
 * passage?  0: it is none; else that and 1 more. */
__noinline __u64 filter_passage(__u32 tgid, __u64 pc)
{
	const struct event_choices *choices = bpf_map_lookup_elem(&process_choices, &tgid);

	if (!choices)
		return 0;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < EVENT_MAX_PASSAGES && i < choices->nr_passages; i++)
		if (pc - choices->passages[i].start < choices->passages[i].size)
			return choices->passages[i].up % EVENT_MOST_UP + 1;
	return 0;
}

/* What is chosen of the process @tgid, and in the second byte of its calls that return to @pc, with
 * the stack pointer @sp there, or to the caller of a passage. */
__noinline __u32 filter_chosen(__u32 tgid, __u64 pc, __u64 sp)
{
	const struct event_choices *choices = bpf_map_lookup_elem(&process_choices, &tgid);
	__u32 site = 0, found;
	__u64 up;

	if (!choices)
		return 0;
#pragma clang loop unroll(disable)
	for (int passed = 0; passed <= EVENT_MAX_PASSED && choices->nr; passed++) {
		found = filter_last_site(tgid, pc);
		site = found > site ? found : site;
		up = filter_passage(tgid, pc);
		if (!up)
			break;
		sp += up - 1;
		if (bpf_probe_read_user(&pc, sizeof(pc), (void *)sp))
			break;
		sp += sizeof(pc);
	}
	if (site)
		site = choices->sites[(site - 1) % EVENT_MAX_SITES].mode;
	return (site & 0xff) << 8 | (choices->mode & 0xff);
}

/* The program of the process @tgid is over, which @execs another: what is chosen of its
 * sites means nothing any more. */
static __always_inline void filter_unchoose(__u32 tgid, int execs)
{
	struct event_choices *choices;

	if (!filter.by_thread || !filter_control.chosen)
		return;
	if (!execs) {
		bpf_map_delete_elem(&process_choices, &tgid);
		return;
	}
	choices = bpf_map_lookup_elem(&process_choices, &tgid);
	if (choices)
		choices->nr = choices->nr_passages = 0;
}

#endif
