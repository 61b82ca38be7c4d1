/* send_small.h - events without a stack on their way into the rings */
#ifndef MLEAK_BPF_SEND_SMALL_H
#define MLEAK_BPF_SEND_SMALL_H

#include "bpf/ring.h"
#include "bpf/state.h"

/* What the first ring has taken by now; asked before there is room in the second one. */
static __always_inline __u32 front_by_now(void)
{
	return event_front(bpf_ringbuf_query(&front, BPF_RB_PROD_POS));
}

/* Room for an event, whose head and time are set.  NULL: both rings are full. */
static __always_inline struct event_small *reserve_small(enum event_type type, __u32 what)
{
	struct event_small *e = bpf_ringbuf_reserve(&front, sizeof(*e), 0);
	__u32 front_at = 0;

	if (!e) {
		front_at = front_by_now();
		e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	}
	if (!e)
		return 0;
	e->head.word = event_word(type, what, front_at);
	e->time_ns = bpf_ktime_get_ns();
	return e;
}

/* An event of the thread @st about @addr.  -1: no room. */
static __always_inline int send_small(struct thread_state *st, enum event_type type, __u64 addr,
				      __u32 nested)
{
	struct event_small *e = reserve_small(type, nested);

	if (!e)
		return -1;
	e->id = st->id;
	e->addr = addr;
	bpf_ringbuf_submit(e, spend(st, sizeof(*e)));
	return 0;
}

/* Every free goes through here. */
static __always_inline void record_free(struct thread_state *st, __u64 addr, __u32 nested)
{
	if (send_small(st, EVENT_FREE, addr, nested))
		count(&drops.free);
}

/* The free @freed of @st was kept since @time_ns. */
static __always_inline void record_kept(struct thread_state *st, __u64 freed, __u64 time_ns)
{
	struct event_small *e = reserve_small(EVENT_FREE, 0);

	if (!e) {
		count(&drops.free);
		return;
	}
	e->id = st->id;
	e->addr = event_freed(freed);
	e->time_ns = time_ns;
	bpf_ringbuf_submit(e, spend(st, sizeof(*e)));
}

/*
 * A free of a thread that is alone in its memory may wait for the thread's next allocation, whose
 * event takes it along: a record less in the rings.  The block cannot be allocated again before
 * that.  One is kept; another free, and what ends that state or the program, sends it by itself.
 * What stays for a while the recorder takes from the slot, at any time: so it is exchanged.
 */
static __always_inline void keep_freed(struct thread_state *st, __u64 addr)
{
	__u64 before, before_ns = st->freed_ns;

	if (st->freed == FREED_SENT || addr >> EVENT_ADDRESS_BITS) {
		record_free(st, addr, 0);
		return;
	}
	st->freed_ns = bpf_ktime_get_ns();
	st->freed_nr = (st->freed_nr + (1ull << EVENT_ADDRESS_BITS)) & ~(1ull << 63);
	before = __sync_lock_test_and_set(&st->freed, st->freed_nr | addr);
	if (before >= EVENT_FREED_MIN)
		record_kept(st, before, before_ns);
}

/* Send what this thread keeps.  From now on it may keep @next: FREED_NONE or FREED_SENT. */
__noinline int send_freed(struct thread_state *st, __u64 next)
{
	__u64 before;

	if (!st || st->freed == FREED_SENT)
		return 0;
	before = __sync_lock_test_and_set(&st->freed, next);
	if (before >= EVENT_FREED_MIN)
		record_kept(st, before, st->freed_ns);
	return 0;
}

/* @id: the process it happens to, and its thread. -1: no room.  It wakes the recorder, which has to
 * act on it. */
static __always_inline int send_life(enum event_type type, __u64 id, __u64 addr, __u32 nested)
{
	struct event_small *e = reserve_small(type, nested);

	if (!e)
		return -1;
	e->id = id;
	e->addr = addr;
	e->value = bpf_ktime_get_ns();
	bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
	return 0;
}

#endif
