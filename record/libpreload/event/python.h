/* python.h - the frames of CPython go before an allocation into the thread's ring */
#ifndef LIBPRELOAD_PYTHON_H
#define LIBPRELOAD_PYTHON_H

#include "record/libpreload/event/thread_ring.h"
#include "record/libpreload/python_record.h"

/* Write the frames of this thread, if it interprets now, and what of their code objects is new, to
 * @lane, for an allocation at the stack pointer @sp.  The recorder found the interpreter when it
 * looked the @round-th time. */
void preload_python(struct preload_header *h, struct thread_ring *lane, uint64_t sp,
		    uint32_t round);

/* Has this process an interpreter?  The round to be given to preload_python(), or 0. */
static inline uint32_t preload_has_python(void)
{
	const struct preload_facts *facts = preload_state.facts;

	return facts ? __atomic_load_n(&facts->pythons, __ATOMIC_ACQUIRE) : 0;
}

/* Begin a record at @to, of a call on the stack at @sp.  Returns where it goes, behind a base where
 * one is needed: write_event.c. */
struct preload_record *start_record(struct thread_ring *lane, uint8_t *to, uint64_t sp);

#endif
