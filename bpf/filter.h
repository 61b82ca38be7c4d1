/* filter.h - which allocations are sent, and which frees; what is left out is counted
 *
 * The settings are constants when the programs are loaded: without a filter the verifier removes
 * all of this but the two instructions that look at filter.on.
 *
 * The free of a block that was not sent must not be sent either, so the addresses of those that
 * were are kept.  Where that cannot be known (the table was full once; a forked process frees a
 * copy of its parent's block) the free is in doubt.  It is sent marked as nested: then it says
 * nothing new when its block is not known.
 */
#ifndef MLEAK_BPF_FILTER_H
#define MLEAK_BPF_FILTER_H

#include "bpf/state.h"

/* Set by the recorder before the programs are loaded. */
const volatile struct event_filter filter;

struct event_filter_control filter_control;

/* Programs have ended or were replaced, of which blocks are still kept: their addresses come again.
 */
__u32 filter_outdated;

/* What becomes of an event. */
enum filter_fate {
	FILTER_OUT, /* it is not sent */
	FILTER_IN,
	FILTER_IN_DOUBT, /* a free of a block of which nothing is known */
};

/* A block of a process. */
struct filter_key {
	__u64 addr;
	__u64 tgid;
};

/* The recorder sets max_entries, or leaves the maps out. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, struct filter_key);
	__type(value, struct filter_block);
} filter_blocks SEC(".maps");

/* By thread: is all of it sent?  Changed here, and by user space at any time. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u32); /* enum event_thread_mode */
} thread_modes SEC(".maps");

/* By thread: bytes outstanding of what it allocated, whoever frees it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __s64); /* below 0 by blocks of a thread before, of the same number */
} thread_bytes SEC(".maps");

/* Processes that were forked by recorded ones, and still run their parent's program: they have copies
 * of blocks that are kept as their parent's. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, EVENT_MAX_TARGETS);
	__type(key, __u32);
	__type(value, __u32); /* nothing */
} filter_forks SEC(".maps");

/* Of each CPU its own: CPUs that count in one place wait for each other. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct event_skips);
} filter_skips SEC(".maps");

/* Count what is left out.  Returns FILTER_OUT. */
static __always_inline enum filter_fate filter_skip(enum event_skip why, __u64 size)
{
	__u32 only = 0;
	struct event_skips *skips = bpf_map_lookup_elem(&filter_skips, &only);

	barrier_var(why); /* or the check is left out, which the verifier wants */
	if (skips && why < EVENT_SKIP_NR) {
		count(&skips->nr[why]);
		__sync_fetch_and_add(&skips->bytes[why], size);
	}
	return FILTER_OUT;
}

/*
 * How many units of weight lie before the next one that is sampled: geometrically distributed, as
 * if each unit were sampled with the same probability by itself.  The binary digits of such a
 * number are independent of each other, so each is drawn with its own probability.
 */
static __always_inline __u64 filter_draw(void)
{
	__u64 distance = 0;

#pragma clang loop unroll(disable)
	for (int i = 0; i < EVENT_FILTER_DIGITS; i++) {
		__u32 chance = filter.digits[i];

		if (!chance)
			break; /* nor has a higher one */
		if (bpf_get_prandom_u32() < chance)
			distance |= 1ull << i;
	}
	return distance;
}

/* What was walked over so far does not matter to what comes: each thread may begin anew. */
static __always_inline int filter_samples(struct filter_thread *f, __u64 size)
{
	__u64 weight = filter.by_bytes ? size + !size : 1;

	if (!f->drawn)
		f->distance = filter_draw();
	f->drawn = 1;
	if (f->distance >= weight) {
		f->distance -= weight;
		return 0;
	}
	f->distance = filter_draw();
	return 1;
}

/* Add @bytes to what thread @tid has outstanding.  Returns the sum. */
static __always_inline __s64 filter_account(__u32 tid, __s64 bytes)
{
	__s64 *sum, none = 0;

	if (!filter.trigger_bytes)
		return 0;
	sum = bpf_map_lookup_elem(&thread_bytes, &tid);
	if (!sum) {
		bpf_map_update_elem(&thread_bytes, &tid, &none, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&thread_bytes, &tid);
	}
	return sum ? __sync_fetch_and_add(sum, bytes) + bytes : 0;
}

/* Keep what is known of a block.  Nothing is known of those that are forgotten here. */
static __always_inline void filter_keep(const struct filter_key *key,
					const struct filter_block *block)
{
	if (!bpf_map_update_elem(&filter_blocks, key, block, BPF_ANY))
		return;
	filter_control.full = 1;
	filter_skip(EVENT_SKIP_UNKEPT, block->size);
	filter_account(block->tid, -(__s64)block->size);
}

/* Is all of this thread sent, its @size bytes allocated now among them? */
static __always_inline int filter_thread_is_full(__u32 tid, __u64 size)
{
	__s64 outstanding = filter_account(tid, size);
	__u32 full = EVENT_THREAD_FULL, *mode = bpf_map_lookup_elem(&thread_modes, &tid);

	if (filter_control.all_full || (mode && *mode == EVENT_THREAD_FULL))
		return 1;
	if (!filter.trigger_bytes || outstanding < (__s64)filter.trigger_bytes)
		return 0;
	bpf_map_update_elem(&thread_modes, &tid, &full, BPF_ANY);
	return 1;
}

static __always_inline int filter_is_delayed(void)
{
	return filter.delays &&
	       (!filter_control.begin_ns || bpf_ktime_get_ns() < filter_control.begin_ns);
}

/* Is the block of the call under way sent?  EVENT_SKIP_NR: it is; else why not. */
static __always_inline enum event_skip filter_judge(struct thread_state *st)
{
	__u64 size = st->now.size;

	if (filter_is_delayed())
		return EVENT_SKIP_DELAY;
	if (size < filter.min_size || size > filter.max_size)
		return EVENT_SKIP_SIZE;
	if (filter.by_thread && !filter_thread_is_full(event_tid(st->id), size))
		return EVENT_SKIP_TRIGGER;
	if (filter.samples && !filter_samples(&st->filter, size))
		return EVENT_SKIP_SAMPLE;
	return EVENT_SKIP_NR;
}

/* @st->now, a call of @func, has allocated @addr: is it sent? */
static __noinline enum filter_fate filter_alloc(struct thread_state *st, __u32 func, __u64 addr)
{
	struct filter_key key = {.addr = addr};
	struct filter_block block = {};
	enum event_skip why;
	int counted;

	if (!st)
		return FILTER_OUT;
	key.tgid = event_tgid(st->id);
	why = filter_judge(st);
	block.size = st->now.size;
	block.tid = event_tid(st->id);
	block.sent = why == EVENT_SKIP_NR;
	counted = filter.trigger_bytes && why != EVENT_SKIP_DELAY && why != EVENT_SKIP_SIZE;
	/* What unmaps it is sent in any case. */
	if (counted || (block.sent && func != FUNC_MMAP && func != FUNC_MREMAP))
		filter_keep(&key, &block);
	else if (filter_outdated)
		bpf_map_delete_elem(&filter_blocks, &key);
	return block.sent ? FILTER_IN : filter_skip(why, block.size);
}

/* A block is freed of which nothing is known. */
static __always_inline enum filter_fate filter_unknown(struct thread_state *st)
{
	__u32 tgid = event_tgid(st->id);

	if (filter_control.full || (follow && bpf_map_lookup_elem(&filter_forks, &tgid)))
		return FILTER_IN_DOUBT;
	return filter_skip(EVENT_SKIP_FREE, 0);
}

/* Take out what is known of the block at @addr, which is released, into @st->filter.released. */
static __noinline enum filter_fate filter_release(struct thread_state *st, __u64 addr)
{
	struct filter_key key = {.addr = addr};
	struct filter_block *known, *old;

	if (!st)
		return FILTER_OUT;
	key.tgid = event_tgid(st->id);
	old = &st->filter.released;
	old->sent = 0;
	old->size = 0;
	known = bpf_map_lookup_elem(&filter_blocks, &key);
	if (!known)
		return filter_unknown(st);
	*old = *known;
	filter_account(old->tid, -(__s64)old->size);
	bpf_map_delete_elem(&filter_blocks, &key);
	return old->sent ? FILTER_IN : filter_skip(EVENT_SKIP_FREE, 0);
}

/* The block at @addr is freed.  Within a realloc that is the realloc's own work: what it released
 * is still to be known if it fails. */
static __noinline enum filter_fate filter_free(struct thread_state *st, __u64 addr)
{
	struct filter_block released;
	enum filter_fate fate;

	if (!st)
		return FILTER_OUT;
	released = st->filter.released;
	fate = filter_release(st, addr);
	st->filter.released = released;
	return fate;
}

/* The realloc under way has failed: what it released lives. */
static __noinline enum filter_fate filter_restore(struct thread_state *st)
{
	struct filter_key key = {};
	struct filter_block *old;

	if (!st)
		return FILTER_OUT;
	old = &st->filter.released;
	if (!old->size && !old->sent)
		return FILTER_OUT;
	key.addr = st->now.arg;
	key.tgid = event_tgid(st->id);
	filter_account(old->tid, old->size);
	filter_keep(&key, old);
	return old->sent ? FILTER_IN : FILTER_OUT;
}

/* [@addr, @addr + @size) is unmapped: of a mapping that begins there only the rest is left.  What
 * does not reach its beginning is not taken off, nor is what mremap did not move after all counted
 * again. */
static __noinline int filter_unmap(struct thread_state *st, __u64 addr, __u64 size)
{
	struct filter_key key = {.addr = addr};
	struct filter_block *known, rest;

	if (!st)
		return 0;
	key.tgid = event_tgid(st->id);
	known = bpf_map_lookup_elem(&filter_blocks, &key);
	if (!known)
		return 0;
	rest = *known;
	bpf_map_delete_elem(&filter_blocks, &key);
	if (rest.size <= size) {
		filter_account(rest.tid, -(__s64)rest.size);
		return 0;
	}
	filter_account(rest.tid, -(__s64)size);
	rest.size -= size;
	key.addr += size;
	filter_keep(&key, &rest);
	return 0;
}

/* The program of a process is over: it ended or calls exec.  @id: the process, and its thread that
 * did.  Nothing of what it allocated is outstanding. */
static __always_inline void filter_over(__u64 id)
{
	__u32 tgid = event_tgid(id), tid = event_tid(id);

	if (!filter.on)
		return;
	filter_outdated = 1;
	if (follow)
		bpf_map_delete_elem(&filter_forks, &tgid);
	if (filter.trigger_bytes)
		bpf_map_delete_elem(&thread_bytes, &tid);
}

/* A recorded process has forked @tgid, which is recorded too. */
static __always_inline void filter_forked(__u32 tgid)
{
	__u32 nothing = 0;

	if (filter.on && bpf_map_update_elem(&filter_forks, &tgid, &nothing, BPF_ANY))
		filter_control.full = 1; /* then all such frees are in doubt */
}

#endif
