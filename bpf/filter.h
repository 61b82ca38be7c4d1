/* filter.h - which allocations are sent, and which frees; what is left out is counted
 *
 * The settings are constants when the programs are loaded: without a filter the verifier removes
 * all of this but the two instructions that look at filter.on.  The programs for plain malloc and
 * free do not even have those; with a filter the recorder does not use them.
 *
 * The free of a block that was not sent must not be sent either, so the addresses of those that
 * were are kept.  Where that cannot be known (the table was full once; a forked process frees a
 * copy of its parent's block) the free is sent marked as nested: then it says nothing new when its
 * block is not known.
 */
#ifndef MLEAK_BPF_FILTER_H
#define MLEAK_BPF_FILTER_H

#include "bpf/send_small.h"
#include "bpf/state.h"

/* Set by the recorder before the programs are loaded. */
const volatile struct event_filter filter;

struct event_filter_control filter_control;

/* A program has ended or was replaced, of which blocks are still kept: their addresses come again.
 */
__u32 filter_outdated;

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

/* By thread: outstanding bytes that it allocated, whichever thread frees them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __s64); /* below 0 by blocks of a thread before, of the same number */
} thread_bytes SEC(".maps");

/* The processes that began as a copy of another, and free what that allocated. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_MAX_TARGETS);
	__type(key, __u32);
	__type(value, __u32);
} filter_copies SEC(".maps");

/* Of each CPU its own: CPUs that count in one place wait for each other. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct event_skips);
} filter_skips SEC(".maps");

/* Count what is left out.  Returns 0: it is not to be sent. */
static __always_inline int filter_skip(enum event_skip why, __u64 size)
{
	__u32 only = 0;
	struct event_skips *skips = bpf_map_lookup_elem(&filter_skips, &only);

	if (skips) {
		count(&skips->nr[why]);
		__sync_fetch_and_add(&skips->bytes[why], size);
	}
	return 0;
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
static __always_inline void filter_keep(__u64 id, __u64 addr, const struct filter_block *block)
{
	struct filter_key key = {.addr = addr, .tgid = id >> 32};

	if (!bpf_map_update_elem(&filter_blocks, &key, block, BPF_ANY))
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

/* A new block begins at @addr: what is known of that address is of another one. */
static __always_inline void filter_clear(__u64 id, __u64 addr)
{
	struct filter_key key = {.addr = addr, .tgid = id >> 32};

	bpf_map_delete_elem(&filter_blocks, &key);
}

/* With a filter on: is the block at @addr, which @st->now allocated, to be sent?  It is counted if
 * not, and what its free must know is kept. */
static __noinline int filter_takes(struct thread_state *st, __u32 func, __u64 addr)
{
	int mapped = func == FUNC_MMAP || func == FUNC_MREMAP;
	struct filter_block block = {};

	if (!st)
		return 0;
	block.size = st->now.size;
	block.tid = event_tid(st->id);
	if (filter_outdated)
		filter_clear(st->id, addr);
	if (filter.delays &&
	    (!filter_control.begin_ns || bpf_ktime_get_ns() < filter_control.begin_ns))
		return filter_skip(EVENT_SKIP_DELAY, block.size);
	if (block.size < filter.min_size || block.size > filter.max_size)
		return filter_skip(EVENT_SKIP_SIZE, block.size);
	block.sent = !filter.by_thread || filter_thread_is_full(block.tid, block.size);
	if (!block.sent)
		filter_skip(EVENT_SKIP_TRIGGER, block.size);
	else if (filter.samples && !filter_samples(&st->filter, block.size))
		block.sent = filter_skip(EVENT_SKIP_SAMPLE, block.size);
	/* What unmaps it is sent in any case. */
	if (filter.trigger_bytes || (block.sent && !mapped))
		filter_keep(st->id, addr, &block);
	return block.sent;
}

/* Is what @st->now, a call of @func, has allocated to be sent? */
static __always_inline int filter_alloc(struct thread_state *st, __u32 func, __u64 addr)
{
	return !filter.on || filter_takes(st, func, addr);
}

/* A block is freed of which nothing is known.  Returns 0. */
static __always_inline int filter_unknown(struct thread_state *st, __u64 addr)
{
	__u32 tgid = event_tgid(st->id);

	if (!filter_control.full && !bpf_map_lookup_elem(&filter_copies, &tgid))
		return filter_skip(EVENT_SKIP_FREE, 0);
	if (send_small(st, EVENT_FREE, addr, 1))
		count(&drops.free);
	return 0;
}

/* Take out what is known of the block at @addr into @old.  Returns whether it was sent. */
static __noinline int filter_forget(struct thread_state *st, __u64 addr, struct filter_block *old)
{
	struct filter_key key = {.addr = addr};
	struct filter_block *known;

	if (!st || !old)
		return 0;
	key.tgid = event_tgid(st->id);
	known = bpf_map_lookup_elem(&filter_blocks, &key);
	old->sent = 0;
	old->size = 0;
	if (!known)
		return filter_unknown(st, addr);
	*old = *known;
	filter_account(old->tid, -(__s64)old->size);
	bpf_map_delete_elem(&filter_blocks, &key);
	return old->sent || filter_skip(EVENT_SKIP_FREE, 0);
}

/* Is the free of @addr still to be sent? */
static __always_inline int filter_free(struct thread_state *st, __u64 addr)
{
	struct filter_block old;

	return !filter.on || filter_forget(st, addr, &old);
}

/* Is the release of @addr by realloc still to be sent?  A free that was sent in its place cannot
 * be taken back: a block that is not known stays freed if its realloc fails. */
static __always_inline int filter_release(struct thread_state *st, __u64 addr)
{
	return !filter.on || filter_forget(st, addr, &st->filter.released);
}

/* The realloc @st->now failed: keep and account the block again that filter_release() took out.
 * Returns whether that block was sent. */
static __noinline int filter_restores(struct thread_state *st)
{
	struct filter_block *old = st ? &st->filter.released : 0;

	if (!old || (!old->size && !old->sent))
		return 0;
	filter_account(old->tid, old->size);
	filter_keep(st->id, st->now.arg, old);
	return old->sent;
}

/* What @st->now, a call of @func which failed, released lives.  Is that to be sent?  A mapping that
 * mremap did not move is not counted for its thread again. */
static __always_inline int filter_restore(struct thread_state *st, __u32 func)
{
	return !filter.on || func == FUNC_MREMAP || filter_restores(st);
}

/* [@addr, @addr + @size) is unmapped: of a mapping that begins there only the rest is left.  What
 * does not reach its beginning is not taken off. */
static __noinline int filter_unmap_known(struct thread_state *st, __u64 addr, __u64 size)
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
	filter_keep(st->id, addr + size, &rest);
	return 0;
}

/* [@addr, @addr + @size) is unmapped: it is not outstanding any more, if that is counted. */
static __always_inline void filter_unmap(struct thread_state *st, __u64 addr, __u64 size)
{
	if (filter.on && filter.trigger_bytes)
		filter_unmap_known(st, addr, size);
}

/* The process @tgid begins as a copy of another. */
static __always_inline void filter_fork(__u32 tgid)
{
	__u32 copy = 1;

	if (filter.on && bpf_map_update_elem(&filter_copies, &tgid, &copy, BPF_ANY))
		filter_control.full = 1;
}

/* The program of a process is over: it has ended, or the thread @id runs another.  Nothing of what
 * that thread allocated is outstanding, and the process is a copy no more. */
static __always_inline void filter_over(__u64 id)
{
	__u32 tgid = event_tgid(id), tid = event_tid(id);

	if (!filter.on)
		return;
	filter_outdated = 1;
	bpf_map_delete_elem(&filter_copies, &tgid);
	if (filter.trigger_bytes)
		bpf_map_delete_elem(&thread_bytes, &tid);
}

#endif
