/* send.h - allocations, and what unmaps them, on their way into the rings */
#ifndef MLEAK_BPF_SEND_H
#define MLEAK_BPF_SEND_H

#include "bpf/filter.h"
#include "bpf/frames.h"
#include "bpf/golang.h"
#include "bpf/ring.h"
#include "bpf/send_small.h"
#include "bpf/stack.h"
#include "bpf/state.h"

/* EVENT_UNMAP of [@addr, @addr + @size). */
static __always_inline void record_unmap(struct thread_state *st, __u64 addr, __u64 size)
{
	struct event_small *e;

	filter_unmap(st, addr, size);
	e = reserve_small(EVENT_UNMAP, 0);
	if (!e) {
		count(&drops.unmap);
		return;
	}
	e->id = st->id;
	e->addr = addr;
	e->value = size;
	bpf_ringbuf_submit(e, spend(st, sizeof(*e)));
}

/* An allocation in memory: a function that is not static takes that, and the registers of a return
 * need not be the program's context. */
struct returned {
	__u64 regs[EVENT_NR_REGS];
	__u64 addr;
	__u64 func;
};

/* Copy the registers of @ctx that an event carries to @to, which has room for EVENT_NR_REGS. */
static __always_inline void copy_regs(__u64 *to, const struct pt_regs *ctx)
{
	to[EVENT_RBX] = ctx->rbx;
	to[EVENT_RBP] = ctx->rbp;
	to[EVENT_RSP] = ctx->rsp;
	to[EVENT_R12] = ctx->r12;
	to[EVENT_R13] = ctx->r13;
	to[EVENT_R14] = ctx->r14;
	to[EVENT_R15] = ctx->r15;
	to[EVENT_RIP] = ctx->rip;
}

/* Stack bytes for which there is room in an event: a few sizes, because a ring's records have sizes
 * that the verifier knows.  0: for this many there is none.  The smallest holds a slice, the
 * largest everything that can be requested, wherever the stack pointer is.  @head bytes before it
 * are added: to a constant, which takes no instruction. */
static __always_inline __u32 room_behind(__u32 head, __u32 len)
{
	if (len <= 1088)
		return head + (len <= 192 ? 192 : len <= 576 ? 576 : 1088);
	if (len <= 4096)
		return head + (len <= 2048 ? 2048 : len <= 3072 ? 3072 : 4096);
	if (len <= 12288)
		return head + (len <= 8192 ? 8192 : 12288);
	if (len <= 24576)
		return head + (len <= 16384 ? 16384 : 24576);
	return len <= 65600 ? head + 65600 : 0;
}

/* The same without anything before it. */
static __always_inline __u32 room_for(__u32 len)
{
	return room_behind(0, len);
}

/* Where the copy of a stack begins. */
static __always_inline __u64 copy_from(__u64 sp)
{
	return sp & -(__u64)EVENT_STACK_ALIGN;
}

/* How much of a stack is taken: bytes in the lower half, enum dwunw_event_flag in the upper one, as
 * event_alloc.take has it.  TAKE_NONE: nothing, the allocation is dropped. */
#define TAKE(len, flags) ((__u64)(flags) << 32 | (len))
#define TAKE_NONE	 0xffffffffull

/* Holds a slice, wherever the stack pointer is. */
#define SLICE_LEN (DWUNW_CAPTURE_SLICE + EVENT_STACK_ALIGN)

/* The stack is not the one noted, or not all of it may be taken. */
__noinline __u64 take_less(struct thread_state *st, __u64 sp)
{
	__u64 from = copy_from(sp), len = st ? st->stack_hi - from : 0, most;
	__u32 flags = 0;

	if (!st)
		return TAKE_NONE;
	if (len > st->stack_span) {
		len = find_stack(st, sp) - from;
		if (len > st->stack_span) {
			len = sp + stack_limit - from;
			flags = DWUNW_EVENT_STACK_UNBOUNDED;
		}
	}
	/* It may have been emptied since; and the thread sends nothing by which it would look. */
	if (!st->stack_most)
		look_at_ring(st);
	most = sp + st->stack_most - from;
	if (len <= most)
		return TAKE(len, flags);
	if (st->stack_most < stack_limit)
		flags |= DWUNW_EVENT_STACK_DEGRADED;
	else
		flags |= DWUNW_EVENT_STACK_LIMIT;
	return st->stack_most ? TAKE(most, flags) : TAKE_NONE;
}

/* There was no room for an allocation that wants @take.  May it have a slice?  (Not if, rarer
 * still, the end of its stack is not known.) */
__noinline int may_have_slice(struct thread_state *st, __u64 take)
{
	look_at_ring(st);
	return st && st->stack_most && (__u32)take > SLICE_LEN && take != TAKE_NONE &&
	       !(take >> 32 & DWUNW_EVENT_STACK_UNBOUNDED);
}

/* Room in the second ring, of which front_by_now() was asked before. */
static __always_inline struct event_alloc *reserve_alloc(__u64 room)
{
	return bpf_ringbuf_reserve(&events, sizeof(struct event_alloc) + room, 0);
}

/* The free that waits for the current allocation, now, or none. */
static __always_inline __u64 take_freed(struct thread_state *st, __u64 now_ns)
{
	__u64 freed = st->freed, age;

	if ((__s64)freed >= EVENT_FREED_MIN)
		freed = __sync_lock_test_and_set(&st->freed, FREED_NONE);
	if ((__s64)freed < EVENT_FREED_MIN)
		return freed;
	age = (now_ns - st->freed_ns) >> EVENT_AGE_SHIFT;
	if (age > EVENT_AGE_MOST)
		age = EVENT_AGE_MOST;
	return event_freed(freed) | age << EVENT_ADDRESS_BITS;
}

/* What is the same however the stack is taken: @st->now is over, and @word is the event's head. */
static __always_inline void fill_alloc(struct event_alloc *e, struct thread_state *st, __u64 word)
{
	e->head.word = word;
	e->id = st->id;
	e->size = st->now.size;
}

/* fill_alloc(), and the address and registers of @r.  @front_at is 0 in the first ring. */
static __always_inline void fill_returned(struct event_alloc *e, struct thread_state *st,
					  const struct returned *r, __u32 front_at)
{
	fill_alloc(e, st, event_word(EVENT_ALLOC, (__u32)r->func, front_at));
	e->addr = r->addr;
	for (int i = 0; i < EVENT_NR_REGS; i++)
		e->regs[i] = r->regs[i];
}

/* Last, when nothing can fail any more: the time, and the free that goes with the event. */
static __always_inline void fill_time(struct event_alloc *e, struct thread_state *st)
{
	e->time_ns = bpf_ktime_get_ns();
	e->freed = take_freed(st, e->time_ns);
}

/* Stack bytes for which there is room when they are read by pages: any number of them is followed
 * by a page, so that the verifier need not know where in a page the copy begins. */
static __always_inline __u32 paged_room_for(__u32 len)
{
	if (len <= 4096)
		return 8192;
	return len <= 20480 ? 24576 : len <= 65600 ? 69696 : 0;
}

/*
 * Read the stack of @e from @from on by pages, those of memory, for one of them cannot be read.
 * Such a page may well lie in the middle of a stack: a large buffer that was never touched.  It is
 * left all zero, and what lies beyond it is read anyway; unless the stack's end is not known: then
 * that might be it.  @e has room for @room bytes, a constant.
 */
static __always_inline void read_pages(struct event_alloc *e, __u64 from, __u32 room)
{
	/* For verifiers of before 6.8: 64 bits, for 32 that are copied they keep no bound of, and
	 * what is used is compared with a constant. */
	__u64 step = PAGE_SIZE - (from & (PAGE_SIZE - 1)), len = e->stack_len, at, want;

	e->flags |= DWUNW_EVENT_STACK_FAULT;
#pragma clang loop unroll(disable)
	for (at = 0; at < len; at += step, step = PAGE_SIZE) {
		barrier_var(at);
		if (at > room - PAGE_SIZE)
			break;
		want = len - at < step ? len - at : step;
		barrier_var(want);
		if (want > PAGE_SIZE)
			break;
		if (!bpf_probe_read_user(e->stack + at, want, (void *)(from + at)))
			continue;
		if (e->flags & DWUNW_EVENT_STACK_UNBOUNDED) {
			e->stack_len = at;
			break;
		}
	}
}

/* Of a stack whose end is not known: the bytes from @from on up to the first page that cannot be
 * read, at most @len. */
static __always_inline __u32 readable(__u64 from, __u32 len)
{
	__u32 at = PAGE_SIZE - (from & (PAGE_SIZE - 1));
	__u64 word;

#pragma clang loop unroll(disable)
	for (; at < len && at <= 65600; at += PAGE_SIZE)
		if (bpf_probe_read_user(&word, sizeof(word), (void *)(from + at)))
			return at;
	return len;
}

/*
 * A page of the stack could not be read, and the read gave nothing but zeros: the event is made
 * anew and by pages.  It takes what @st->take says.  Not static: the verifier follows it once, not
 * for each room that the event might have had, which took longer than all else of it.
 */
__noinline int record_paged(struct thread_state *st, struct returned *r)
{
	struct event_alloc *e = 0;
	__u64 from, take, now_ns = bpf_ktime_get_ns(), freed;
	__u32 room, front_at = front_by_now();

	if (!st || !r)
		return 0;
	from = copy_from(r->regs[EVENT_RSP]);
	take = *(volatile __u64 *)&st->take;
	if (take >> 32 & DWUNW_EVENT_STACK_UNBOUNDED)
		take = (take & ~(__u64)~0u) | readable(from, (__u32)take);
	room = paged_room_for((__u32)take);
	if (room)
		e = reserve_alloc(room);
	if (!e) {
		count(&drops.alloc);
		freed = take_freed(st, now_ns);
		if (freed >= EVENT_FREED_MIN)
			record_kept(st, freed, now_ns - event_freed_age(freed));
		return 0;
	}
	fill_returned(e, st, r, front_at);
	e->take = take;
	e->time_ns = now_ns;
	e->freed = take_freed(st, now_ns);
	read_pages(e, from, room);
	bpf_ringbuf_submit(e, spend(st, room));
	return 0;
}

/* Read the stack of @e, from @sp on and as much as @take says.  0: it could be read at once. */
static __always_inline long read_stack(struct event_alloc *e, __u64 sp, __u64 take)
{
	__u32 len = (__u32)take;

	/* Else the compiler may hand over all of @take, and keeps @e twice. */
	barrier_var(len);
	barrier_var(e);
	return bpf_probe_read_user(e->stack, len, (void *)copy_from(sp));
}

/* The event that was made for @r, which takes @take, could not read the stack: it is given back. */
static __always_inline void discard_alloc(struct event_alloc *e, struct thread_state *st,
					  __u64 take)
{
	bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
	st->take = take;
}

/* The first ring has no room for the allocation @r, which takes what @st->take says. */
__noinline int record_behind(struct thread_state *st, struct returned *r)
{
	struct event_alloc *e = 0;
	__u32 front_at = front_by_now(), room;
	__u64 take;

	if (!st || !r)
		return 0;
	take = *(volatile __u64 *)&st->take;
	room = room_for((__u32)take);
	if (room)
		e = reserve_alloc(room);
	if (!e && may_have_slice(st, take)) {
		take = TAKE(SLICE_LEN, DWUNW_EVENT_STACK_DEGRADED);
		e = reserve_alloc(room_for(SLICE_LEN));
	}
	if (!e) {
		count(&drops.alloc);
		return 0;
	}
	fill_returned(e, st, r, front_at);
	e->take = take;
	if (read_stack(e, r->regs[EVENT_RSP], take)) {
		discard_alloc(e, st, take);
		return record_paged(st, r);
	}
	fill_time(e, st);
	bpf_ringbuf_submit(e, spend(st, (__u32)take));
	return 0;
}

/* The stack of @r is not the one noted, or not all of it may be taken.  Send what comes before the
 * event: frames, and the stack of a goroutine.  Returns what is to be taken. */
static __always_inline __u64 begin_unusual(struct thread_state *st, struct returned *r)
{
	if (any_go)
		r->func |= record_part(st);
	if (interpreters)
		record_frames(st, r->regs[EVENT_RSP]);
	/* By way of memory, where the verifier forgets all it knows of the number: then it follows
	 * one case, not two. */
	st->take = take_less(st, r->regs[EVENT_RSP]);
	return *(volatile __u64 *)&st->take;
}

/*
 * Send the allocation @r: @st->now has returned it.
 *
 * The stack is read at once; only where a page of it is not in memory, by pages.  Not static: the
 * verifier follows it once.
 */
__noinline int record_alloc(struct thread_state *st, struct returned *r)
{
	struct event_alloc *e = 0;
	__u64 take;
	__u32 room;

	if (!st || !r)
		return 0;
	take = st->stack_hi - copy_from(r->regs[EVENT_RSP]);
	if (take > st->stack_usual) {
		take = begin_unusual(st, r);
		if (take >> 32 & DWUNW_EVENT_STACK_UNBOUNDED)
			return record_paged(st, r);
	}
	room = room_for((__u32)take);
	if (room)
		e = bpf_ringbuf_reserve(&front, sizeof(*e) + room, 0);
	if (!e) {
		st->take = take;
		return record_behind(st, r);
	}
	barrier();
	fill_returned(e, st, r, 0);
	e->take = take;
	if (read_stack(e, r->regs[EVENT_RSP], take)) {
		discard_alloc(e, st, take);
		return record_paged(st, r);
	}
	fill_time(e, st);
	bpf_ringbuf_submit(e, spend(st, (__u32)take));
	return 0;
}

/*
 * The same of a malloc, whose block and registers are in @ctx, if its stack is the one noted and
 * can be read at once, and there is room for it.  0: that is not so, and nothing was done.
 *
 * What is needed late is read late: registers that keep it through the calls of helpers are few.
 */
static __always_inline int record_usual(struct pt_regs *ctx, struct thread_state *st)
{
	__u64 take = st->stack_hi - copy_from(ctx->rsp), room, again, word;
	struct event_alloc *e = 0;

	if (take > st->stack_usual)
		return 0;
	room = room_behind(sizeof(*e), (__u32)take);
	if (!room)
		return 0;
	e = bpf_ringbuf_reserve(&front, room, 0);
	word = event_word(EVENT_ALLOC, FUNC_MALLOC, 0);
	if (!e) {
		/* Found anew: to keep it for this would cost the others, too. */
		again = take;
		barrier_var(again);
		word = event_word(EVENT_ALLOC, FUNC_MALLOC, front_by_now());
		e = reserve_alloc(room_for((__u32)again));
		if (!e)
			return 0;
	}
	barrier();
	e->addr = ctx->rax;
	e->take = take;
	fill_alloc(e, st, word);
	copy_regs(e->regs, ctx);
	if (read_stack(e, ctx->rsp, take)) {
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
		return 0;
	}
	fill_time(e, st);
	bpf_ringbuf_submit(e, spend(st, (__u32)take));
	return 1;
}

#endif
