/* ring.h - how full the rings are, and what may still go into them
 *
 * Looking at a ring costs as much as a free does, so it is done once for so many bytes that a
 * thread sends.  The fuller the second ring, the less of a stack is taken, and then no allocation
 * at all: a lost free makes a false leak, a lost allocation makes none.  Frees may use all of both.
 */
#ifndef MLEAK_BPF_RING_H
#define MLEAK_BPF_RING_H

#include "bpf/state.h"

/* Set by the recorder before the programs are loaded. */
const volatile __u64 ring_size = 64 << 20;   /* bytes of events in the second ring */
const volatile __u32 check_bytes = 64 << 10; /* how many a thread sends until it looks again */
const volatile __u64 wakeup_bytes = 1 << 20; /* wake the recorder when so much is waiting, */
const volatile __u64 front_wakeup_bytes = 256 << 10; /* or so much in the first ring */

__u64 recorder_waits; /* the recorder sleeps: set by it, reset by whichever process wakes it */

/* Most stack bytes when @waiting bytes wait in the second ring.  With the default size, 100,000
 * allocations a second lose no event while the recorder is stopped for half a second, only
 * stacks. */
static __always_inline __u32 most_at(__u64 waiting)
{
	__u64 eighth = ring_size / 8;
	__u32 most = stack_limit;

	if (waiting > 5 * eighth)
		most = DWUNW_CAPTURE_SLICE;
	if (waiting > ring_size / 10 * 9)
		most = 0;
	return most;
}

/* What the thread has to do nothing special for: nothing, where a language's frames are taken, too.
 */
static __always_inline void note_usual(struct thread_state *st)
{
	st->stack_usual = st->stack_span < st->stack_most ? st->stack_span : st->stack_most;
	if (any_go || interpreters)
		st->stack_usual = 0;
}

/* Look how full the second ring is: the first is full whenever more comes than the recorder takes
 * at once.  Returns the bytes that wait.  Not static: such a function the verifier follows once,
 * not from each place where it is called, in each state. */
__noinline __u64 look_at_ring(struct thread_state *st)
{
	__u64 waiting = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);

	if (!st)
		return waiting;
	st->budget = (__s32)check_bytes;
	st->stack_most = most_at(waiting);
	note_usual(st);
	may_keep_freed(st);
	return waiting;
}

/* The thread has sent what it may before it looks.  Returns the flags to submit with. */
__noinline __u64 budget_spent(struct thread_state *st)
{
	if (look_at_ring(st) < wakeup_bytes &&
	    bpf_ringbuf_query(&front, BPF_RB_AVAIL_DATA) < front_wakeup_bytes)
		return BPF_RB_NO_WAKEUP;
	if (!recorder_waits)
		return BPF_RB_NO_WAKEUP;
	recorder_waits = 0;
	return BPF_RB_FORCE_WAKEUP;
}

/* @bytes go into a ring.  Returns the flags to submit them with: waking the recorder costs the
 * target a good part of an event, so it is done once for each lot. */
static __always_inline __u64 spend(struct thread_state *st, __u32 bytes)
{
	st->budget -= (__s32)bytes;
	return st->budget < 0 ? budget_spent(st) : BPF_RB_NO_WAKEUP;
}

#endif
