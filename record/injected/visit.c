/* visit.c - see visit.h */
#include "record/injected/visit.h"

#define SURELY_NESTED 16384u /* bytes of stack: an allocator that calls itself is within */

bool visit_is_library(uint64_t pc)
{
	const struct event_code *code = &injected.code;

	for (uint32_t i = 0; i < EVENT_MAX_CODE; i++)
		if (pc - code->libraries[i].start < code->libraries[i].size)
			return true;
	for (uint32_t i = injected.nr_first_mapped; i < injected.nr_mapped; i++)
		if (preload_in(&injected.later[i - injected.nr_first_mapped], pc))
			return true;
	return false;
}

/* Is @pc code from which an allocator may call another's function, or its own?  We do, too. */
static bool is_allocator(uint64_t pc)
{
	return visit_is_library(pc) ||
	       pc - injected.code.program.start < injected.code.program.size ||
	       preload_in(&preload_state.own, pc);
}

/* Has what began at @at been left by a jump, when a call comes at @sp?  That takes a system call,
 * except for what is usual. */
static bool is_left(uint64_t at, uint64_t sp)
{
	/* If nothing was recorded yet, the stack is not known. */
	injected_extend_stack(sp);
	injected_extend_stack(at);
	if (at - sp - 1 < SURELY_NESTED && thread_ring_on_stack(at) && thread_ring_on_stack(sp))
		return false;
	return abandoned_is_left(at, sp);
}

bool visit_counts(struct injected_thread *t, uint64_t pc, uint64_t sp)
{
	if (is_left(t->inside, sp)) {
		t->inside = 0;
		t->calling = 0;
		return true;
	}
	return !t->calling || !is_allocator(pc);
}
