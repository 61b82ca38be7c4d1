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

/* What is chosen of the process @tgid, and in the second byte of its calls that return to @site. */
static __noinline __u32 filter_chosen(__u32 tgid, __u64 site)
{
	const struct event_choices *choices = bpf_map_lookup_elem(&process_choices, &tgid);
	__u32 of_site = 0;

	if (!choices)
		return 0;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < EVENT_MAX_SITES && i < choices->nr; i++)
		if (site - choices->sites[i].start < choices->sites[i].size)
			of_site = choices->sites[i].mode;
	return (of_site & 0xff) << 8 | (choices->mode & 0xff);
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
		choices->nr = 0;
}

#endif
