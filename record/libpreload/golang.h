/* golang.h - in the target: the goroutine that has called C, and its stack
 *
 * What is read here is what Go's runtime itself reads when C returns.
 */
#ifndef LIBPRELOAD_GOLANG_H
#define LIBPRELOAD_GOLANG_H

#include "record/libpreload/preload.h"

/* A goroutine's stack, as struct event_part has it. */
struct golang_stack {
	uint64_t g, left, sp, hi;
};

/* What the recorder has found out of this program; NULL: it is not recorded, or between two. */
static inline const struct event_go *golang_facts(void)
{
	return preload_state.facts ? &preload_state.facts->golang : NULL;
}

/* Is this a Go program, as far as the recorder knows by now? */
static inline bool golang_is_on(void)
{
	const struct event_go *go = golang_facts();

	return go && __atomic_load_n(&go->on, __ATOMIC_ACQUIRE) == preload_state.program + 1 &&
	       preload_facts_are_new();
}

/* Does Go's runtime map memory for itself by a call that returns to @pc? */
static inline bool golang_maps(uint64_t pc)
{
	return golang_is_on() && golang_facts()->mapped == pc;
}

/* A word of the runtime's at @addr; 0: that is no address of one. */
static inline uint64_t golang_word(uint64_t addr)
{
	return addr >= 65536 && addr < 1ull << 47 && !(addr & 7) ? *(const uint64_t *)addr : 0;
}

/* Find the goroutine that this thread has left for C.  False: there is none. */
static inline bool golang_find(struct golang_stack *s)
{
	const struct event_go *go = golang_facts();
	uint64_t fs = (uint64_t)__builtin_thread_pointer();
	uint64_t g0 = golang_word(fs + (uint64_t)(int64_t)go->tls);
	uint64_t m = g0 ? golang_word(g0 + go->m) : 0;

	if (!m || golang_word(m) != g0)
		return false;
	s->g = golang_word(m + go->curg);
	if (!s->g || s->g == g0)
		return false;
	s->left = golang_word(g0 + go->sp);
	s->sp = golang_word(s->g + go->sp);
	s->hi = golang_word(s->g + go->hi);
	return golang_word(s->sp) && s->hi > s->sp && s->hi < 1ull << 47;
}

#endif
