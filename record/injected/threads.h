/* threads.h - what the injected code knows of each thread, found by its control block
 *
 * There are no variables of threads: those of a library that comes late take memory of the C
 * library's, and its locks.
 */
#ifndef INJECTED_THREADS_H
#define INJECTED_THREADS_H

#include "record/injected/injected.h"
#include "record/libpreload/event/thread_ring.h"

/* Filled by the recorder. */
extern struct injected injected;

extern struct injected_thread injected_threads[INJECTED_NR_THREADS];

/* The rest of what is known of the thread with the same number. */
extern struct injected_events {
	struct preload_thread self;
	uint64_t stack_floor; /* this and all below is not its stack's */
} injected_events[INJECTED_NR_THREADS];

/* The thread with the control block @tcb and the id @tid, made if it is new.  NULL: there is no
 * place, or it cannot be made now. */
struct injected_thread *injected_make_thread(uint64_t tcb, uint32_t tid);

/* This thread; NULL: as above. */
static inline struct injected_thread *injected_find_thread(void)
{
	uint64_t tcb = (uint64_t)__builtin_thread_pointer();
	uint32_t tid = *(const volatile uint32_t *)(tcb + injected.tid_offset);
	struct injected_thread *t =
		&injected_threads[injected_first_place(tcb, INJECTED_NR_THREADS)];

	return LIKELY(t->tcb == tcb && t->tid == tid) ? t : injected_make_thread(tcb, tid);
}

/* See whether this thread's stack, which is known down to some place, goes down to @sp. */
void injected_extend_stack(uint64_t sp);

#endif
