/* filter.h - which allocations are sent, and which frees; what is left out is counted
 *
 * The settings are constants when the programs are loaded: without a filter the verifier removes
 * all of this but the two instructions that look at filter.on.  The programs for plain malloc and
 * free do not even have those; with a filter the recorder does not use them.
 *
 * The free of a block that was not sent is not sent either, so the addresses of those that were are
 * kept.  Where that cannot be known (the table was full once; a copy of a parent's block is freed)
 * the free is sent marked as nested: then it says nothing new when its block is not known.
 */
#ifndef MLEAK_BPF_FILTER_H
#define MLEAK_BPF_FILTER_H

#include "bpf/filter_choices.h"
#include "bpf/filter_sums.h"
#include "bpf/send_small.h"
#include "bpf/state.h"

/* A program is over of which blocks are still kept: their addresses come again. */
__u32 filter_outdated;

/* The recorder sets max_entries, or leaves the maps out. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, struct filter_key);
	__type(value, struct filter_block);
} filter_blocks SEC(".maps");

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
 *
 * It is not static: so the verifier looks at it once and by itself, and knows nothing of the
 * number.  Else it would compare each that can be drawn with a weight of 1, too many for a sample
 * of one in 2048.
 */
__noinline __u64 filter_draw(void)
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

/* Keep what is known of a block.  Nothing is known of those that are forgotten here: returns
 * whether it is kept. */
static __always_inline int filter_keep(__u64 id, __u64 addr, const struct filter_block *block)
{
	struct filter_key key = {.addr = addr, .tgid = id >> 32};

	if (!bpf_map_update_elem(&filter_blocks, &key, block, BPF_ANY))
		return 1;
	filter_control.full = 1;
	filter_skip(EVENT_SKIP_UNKEPT, block->size);
	filter_add(block, event_tgid(id), -(__s64)block->size);
	return 0;
}

/* The same of one that was kept before: it counts as freed where it is not. */
static __always_inline void filter_keep_on(__u64 id, __u64 addr, const struct filter_block *block)
{
	if (!filter_keep(id, addr, block))
		filter_count_free(block, id, 1, block->size);
}

/* Is @block, which @st->now allocates, of those that are sent: as its site, its thread or its
 * process is chosen, or has reached a trigger? */
static __always_inline int filter_is_full(struct thread_state *st, const struct filter_block *block)
{
	__u64 id = st->id, sp = (st->now.sp & ~7ull) + 8; /* behind the return address */
	int why = filter_add(block, event_tgid(id), block->size);
	__u32 triggered = EVENT_THREAD_TRIGGERED, tid = block->tid;
	__u32 *mode = bpf_map_lookup_elem(&thread_modes, &tid);
	__u32 of_thread = mode ? *mode : 0;
	__u32 chosen = filter_control.chosen ? filter_chosen(event_tgid(id), block->site, sp) : 0;

	if (why & FILTER_BY_THREAD && !of_thread)
		bpf_map_update_elem(&thread_modes, &tid, &triggered, BPF_NOEXIST);
	if (chosen >> 8)
		return chosen >> 8 == EVENT_THREAD_FULL;
	if (of_thread == EVENT_THREAD_FULL || of_thread == EVENT_THREAD_HELD)
		return of_thread == EVENT_THREAD_FULL;
	if (chosen)
		return chosen == EVENT_THREAD_FULL;
	return filter_control.all_full || of_thread || why;
}

/* A new block begins at @addr: what is known of that address is of another one. */
static __always_inline void filter_clear(__u64 id, __u64 addr)
{
	struct filter_key key = {.addr = addr, .tgid = id >> 32};

	bpf_map_delete_elem(&filter_blocks, &key);
}

#define FILTER_PAGE 4096u

/* Where the mapping of @size at @addr ends. */
static __always_inline __u64 filter_end_of(__u64 addr, __u64 size)
{
	return (addr + size + FILTER_PAGE - 1) & ~(__u64)(FILTER_PAGE - 1);
}

/* Keep that the mapping which ends at @end begins at @addr: it may be unmapped from its end.  No
 * block has an odd address.  This uses st->filter.rest: stack is scarce. */
static __noinline int filter_keep_end(struct thread_state *st, __u64 addr, __u64 end)
{
	struct filter_key key = {.addr = end | 1};
	struct filter_block *begin;

	if (!st)
		return 0;
	key.tgid = event_tgid(st->id);
	begin = &st->filter.rest;
	begin->size = 0;
	begin->site = addr;
	begin->tid = 0;
	begin->state = FILTER_END;
	if (bpf_map_update_elem(&filter_blocks, &key, begin, BPF_ANY))
		count(&drops.sum);
	return 0;
}

/* With a filter on: is the block at @addr, which @st->now allocated for @site, to be sent?  It is
 * counted if not, and what its free must know is kept. */
static __noinline int filter_takes(struct thread_state *st, __u32 func, __u64 addr, __u64 site)
{
	__u32 plain = func & ~FUNC_RESERVED;
	int mapped = plain == FUNC_MMAP || plain == FUNC_MREMAP;
	struct filter_block block = {};
	__u64 size;

	if (!st)
		return 0;
	size = st->now.size;
	block.site = site;
	block.tid = event_tid(st->id);
	block.state = FILTER_SENT;
	if (filter_outdated)
		filter_clear(st->id, addr);
	if (filter.delays &&
	    (!filter_control.begin_ns || bpf_ktime_get_ns() < filter_control.begin_ns))
		return filter_skip(EVENT_SKIP_DELAY, size);
	if (size < filter.min_size || size > filter.max_size)
		return filter_skip(EVENT_SKIP_SIZE, size);
	/* what is reserved is not outstanding */
	block.size = func & FUNC_RESERVED ? 0 : size;
	if (filter.by_thread && !filter_is_full(st, &block)) {
		block.state = FILTER_COUNTED;
		filter_skip(EVENT_SKIP_TRIGGER, block.size);
	} else if (filter.samples && !filter_samples(&st->filter, size)) {
		block.state = FILTER_LEFT_OUT;
		filter_skip(EVENT_SKIP_SAMPLE, size);
	}
	/* What unmaps it is sent in any case. */
	if ((filter.accounts || (block.state == FILTER_SENT && !mapped)) &&
	    filter_keep(st->id, addr, &block) && block.state == FILTER_COUNTED)
		filter_count(&block, event_tgid(st->id));
	/* of what has no size the end is that of the mapping before it */
	if (mapped && filter.accounts && block.size)
		filter_keep_end(st, addr, filter_end_of(addr, block.size));
	return block.state == FILTER_SENT;
}

/* Is what @st->now, a call of @func which returns to @site, has allocated to be sent? */
static __always_inline int filter_alloc(struct thread_state *st, __u32 func, __u64 addr, __u64 site)
{
	return !filter.on || filter_takes(st, func, addr, site);
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
	old->state = FILTER_UNKNOWN;
	old->size = 0;
	if (!known)
		return filter_unknown(st, addr);
	*old = *known;
	filter_add(old, event_tgid(st->id), -(__s64)old->size);
	filter_count_free(old, st->id, 1, old->size);
	bpf_map_delete_elem(&filter_blocks, &key);
	return old->state == FILTER_SENT || filter_skip(EVENT_SKIP_FREE, 0);
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

/* The realloc @st->now failed, or mremap if @mapped: keep and account the block again that
 * filter_release() or filter_remap() took out.  Returns whether that block was sent. */
static __noinline int filter_restores(struct thread_state *st, __u32 mapped)
{
	struct filter_block *old = st ? &st->filter.released : 0;

	if (!old || old->state == FILTER_UNKNOWN)
		return 0;
	filter_add(old, event_tgid(st->id), old->size);
	filter_count_free(old, st->id, -1, -old->size);
	filter_keep_on(st->id, st->now.arg, old);
	if (mapped && old->size)
		filter_keep_end(st, st->now.arg, filter_end_of(st->now.arg, old->size));
	return old->state == FILTER_SENT;
}

/* What @st->now, a call of @func which failed, released lives.  Is that to be sent?  What mremap
 * unmaps always was. */
static __always_inline int filter_restore(struct thread_state *st, __u32 func)
{
	__u32 mapped = func == FUNC_MREMAP;

	if (!filter.on)
		return 1;
	if (mapped && !filter.accounts)
		return 1;
	return filter_restores(st, mapped) || mapped;
}

/* [@addr, @addr + @size) is unmapped, where no mapping begins: if one ends there, what is left of
 * it ends at @addr.  A part from its middle is not taken off. */
static __noinline int filter_unmap_end(struct thread_state *st, __u64 addr, __u64 size)
{
	struct filter_key key = {.addr = filter_end_of(addr, size) | 1};
	struct filter_block *known;

	if (!st)
		return 0;
	key.tgid = event_tgid(st->id);
	known = bpf_map_lookup_elem(&filter_blocks, &key);
	if (!known || known->site >= addr)
		return 0;
	size = key.addr & ~1ull; /* where it ends */
	st->filter.rest.site = known->site;
	bpf_map_delete_elem(&filter_blocks, &key);
	key.addr = st->filter.rest.site;
	known = bpf_map_lookup_elem(&filter_blocks, &key);
	/* what began there may be another one by now */
	if (!known || key.addr + known->size <= addr ||
	    filter_end_of(key.addr, known->size) != size)
		return 0;
	size = key.addr + known->size - addr;
	filter_add(known, event_tgid(st->id), -(__s64)size);
	filter_count_free(known, st->id, 0, size);
	known->size -= size;
	filter_keep_end(st, key.addr, addr);
	return 0;
}

/* [@addr, @addr + @size) is unmapped: of a mapping that begins there only the rest is left. Returns
 * whether one does. */
static __noinline int filter_unmap_known(struct thread_state *st, __u64 addr, __u64 size)
{
	struct filter_key key = {.addr = addr};
	struct filter_block *known, *rest;

	if (!st)
		return 0;
	key.tgid = event_tgid(st->id);
	known = bpf_map_lookup_elem(&filter_blocks, &key);
	if (!known)
		return 0;
	rest = &st->filter.rest;
	*rest = *known;
	bpf_map_delete_elem(&filter_blocks, &key);
	if (rest->size <= size) {
		filter_add(rest, event_tgid(st->id), -(__s64)rest->size);
		filter_count_free(rest, st->id, 1, rest->size);
		key.addr = filter_end_of(addr, rest->size) | 1;
		if (rest->size)
			bpf_map_delete_elem(&filter_blocks, &key);
		return 1;
	}
	filter_add(rest, event_tgid(st->id), -(__s64)size);
	filter_count_free(rest, st->id, 0, size);
	rest->size -= size;
	filter_keep_on(st->id, addr + size, rest);
	filter_keep_end(st, addr + size, filter_end_of(addr + size, rest->size));
	return 1;
}

/* [@addr, @addr + @size) is unmapped: it is not outstanding any more, if that is counted. */
static __always_inline void filter_unmap(struct thread_state *st, __u64 addr, __u64 size)
{
	if (!filter.on || !filter.accounts)
		return;
	st->filter.rest.state = FILTER_UNKNOWN;
	if (!filter_unmap_known(st, addr, size))
		filter_unmap_end(st, addr, size);
}

/* mremap moves what it has @unmapped, and may fail: then a mapping that was taken off as a whole is
 * to be known again, but a part of one is not. */
static __always_inline void filter_remap(struct thread_state *st, int unmapped)
{
	if (!filter.on || !filter.accounts)
		return;
	st->filter.released = st->filter.rest;
	if (!unmapped || st->filter.rest.state == FILTER_END)
		st->filter.released.state = FILTER_UNKNOWN;
}

/* A program begins in the process @tgid: what was added up of call sites is of another one. */
static __always_inline void filter_begin_program(__u32 tgid)
{
	__u32 program = __sync_fetch_and_add(&filter_programs, 1) + 1;

	if (bpf_map_update_elem(&process_programs, &tgid, &program, BPF_ANY))
		count(&drops.sum);
}

/* The process @tgid begins as a copy. */
static __always_inline void filter_fork(__u32 tgid)
{
	__u32 copy = 1;

	if (filter.on && filter.sum_sites)
		filter_begin_program(tgid);
	if (filter.on && bpf_map_update_elem(&filter_copies, &tgid, &copy, BPF_ANY))
		filter_control.full = 1;
}

/* The thread @id ends: another one that gets its number begins anew. */
static __always_inline void filter_end_thread(__u64 id)
{
	struct event_account *account;
	__u32 tid = event_tid(id);

	if (!filter.on)
		return;
	account = filter.accounts ? bpf_map_lookup_elem(&thread_accounts, &id) : 0;
	if (account)
		account->outstanding = 0;
	if (filter.by_thread)
		bpf_map_delete_elem(&thread_modes, &tid);
}

/* The program of a process is over: it has ended, or the thread @id runs another, if it @execs.
 * Nothing of what that thread allocated is outstanding, and the process is a copy no more. */
static __always_inline void filter_over(__u64 id, int execs)
{
	struct event_account *account;
	__u32 tgid = event_tgid(id);

	if (!filter.on)
		return;
	if (filter.sum_sites && execs)
		filter_begin_program(tgid);
	else if (filter.sum_sites)
		bpf_map_delete_elem(&process_programs, &tgid);
	filter_outdated = 1;
	bpf_map_delete_elem(&filter_copies, &tgid);
	filter_unchoose(tgid, execs);
	if (filter.sum_processes)
		bpf_map_delete_elem(&process_sums, &tgid);
	account = filter.accounts ? bpf_map_lookup_elem(&thread_accounts, &id) : 0;
	if (account)
		account->outstanding = 0;
}

#endif
