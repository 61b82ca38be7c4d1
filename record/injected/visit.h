/* visit.h - a call of a changed function, from its entry to its return
 *
 * Each is noted in the thread's place.  The outermost counts: what the allocator calls itself
 * meanwhile is a part of it.  A signal handler's call, which may come at any time, counts too.
 */
#ifndef INJECTED_VISIT_H
#define INJECTED_VISIT_H

#include "record/injected/threads.h"

/* Of each of these a call pays: nothing of struct visit is in memory. */
#define VISIT_INLINE static inline __attribute__((always_inline))

/* A call under way. */
struct visit {
	const struct injected_site *site;
	struct injected_thread *thread; /* NULL: a stranger */
	uint64_t inside;		/* of thread, before this call */
	bool counts;			/* it is to be recorded */
};

/* The thread @t is in our code already when a call from @pc comes at @sp: does that count?  What it
 * was at before is forgotten if it was left by a jump. */
bool visit_counts(struct injected_thread *t, uint64_t pc, uint64_t sp);

/* Is @pc the code of a library that allocates, or of the C library? */
bool visit_is_library(uint64_t pc);

/* The call that @c made begins.  All after it in the same function, and what it calls, may use
 * preload_self if the call counts. */
VISIT_INLINE void visit_begin(struct visit *v, const struct caller *c)
{
	struct injected_thread *t = injected_find_thread();
	uint64_t sp = (uint64_t)c->stack;

	v->site = &injected.sites[c->site];
	v->thread = t;
	if (UNLIKELY(!t)) {
		__atomic_fetch_add(&injected.nr_strangers, 1, __ATOMIC_RELAXED);
		v->counts = false;
		return;
	}
	preload_self_at = &injected_events[t - injected_threads].self;
	v->counts = true;
	if (UNLIKELY(t->inside))
		v->counts = visit_counts(t, c->pc, sp);
	v->inside = t->inside;
	if (LIKELY(v->counts))
		t->inside = sp;
	thread_ring_fence();
}

/* It is over. */
VISIT_INLINE void visit_end(const struct visit *v)
{
	thread_ring_fence();
	if (LIKELY(v->thread != NULL))
		v->thread->inside = v->inside;
	else
		__atomic_fetch_sub(&injected.nr_strangers, 1, __ATOMIC_RELEASE);
}

/* The original is called. */
VISIT_INLINE uint32_t visit_call(const struct visit *v)
{
	uint32_t before = 0;

	if (UNLIKELY(!v->thread))
		return 0;
	before = v->thread->calling;
	v->thread->calling = 1;
	thread_ring_fence();
	return before;
}

/* It has returned; @before is what visit_call() said. */
VISIT_INLINE void visit_return(const struct visit *v, uint32_t before)
{
	thread_ring_fence();
	if (LIKELY(v->thread != NULL))
		v->thread->calling = before;
}

/* Call the function as it was, which is of the type @type.  Returns what it does. */
#define VISIT_ORIGINAL(v, type, ...)                                                       \
	({                                                                                 \
		uint32_t before_ = visit_call(v);                                          \
		__auto_type result_ = ((__typeof__(type) *)(v)->site->moved)(__VA_ARGS__); \
		visit_return(v, before_);                                                  \
		result_;                                                                   \
	})

#endif
