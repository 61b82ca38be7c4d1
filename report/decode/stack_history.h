/* stack_history.h - for each thread of a trace, the stack that it had last: what a later one that
 * was cut may lack
 *
 * Each chunk of a trace is examined on its own.  What was in those before is requested only where a
 * stack needs it, and when one is done, what it leaves is added to what those before left.
 */
#ifndef REPORT_STACK_HISTORY_H
#define REPORT_STACK_HISTORY_H

#include <stdbool.h>

#include "format/trace.h"
#include "unwind/dwunw.h"

struct stack_history; /* opaque */

/* Copies to @to, by stack_history_copy(), what the thread of @event had before the first event that
 * was given to @to.  Without anything to copy it does nothing. */
typedef void stack_history_before(void *arg, struct stack_history *to,
				  const struct mlk_event *event);

/* None yet; @before is called with @arg, or is NULL: there was nothing.  *@out is NULL on failure.
 * Returns 0 or -ENOMEM. */
int stack_history_new(struct stack_history **out, stack_history_before *before, void *arg);

/*
 * Keep the stack of @event, an ALLOC in the order of the trace or a record of MLK_RECORD_STACK,
 * which has stack_same_from UINT64_MAX.  Without room for it, it is forgotten.
 *
 * Returns true when bytes above it are available, of another moment, but as far as can be told of
 * the same calls: then *@stack is @event's with those, which begin at *@stale_from; valid until the
 * next call.
 */
bool stack_history_pop(struct stack_history *previous, const struct mlk_event *event,
		       struct dwunw_stack *stack, uint64_t *stale_from);

/* Forget the stacks of all threads of process @tgid: it runs another program, or has ended. */
void stack_history_forget(struct stack_history *previous, uint32_t tgid);

/* Release what is kept of process @tgid, which has ended, where there was nothing before. */
void stack_history_end(struct stack_history *previous, uint32_t tgid);

/* Copy to @to what @from has of the thread of @event. */
void stack_history_copy(struct stack_history *to, const struct stack_history *from,
			const struct mlk_event *event);

/* Bring @to, which is what there was before the first event that was given to @from, to where @from
 * is now.  @from is then as at first. */
void stack_history_absorb(struct stack_history *to, struct stack_history *from);

/* Forget all that is known: more happened than was given to @previous. */
void stack_history_clear(struct stack_history *previous);

/* Release @previous; NULL is allowed. */
void stack_history_free(struct stack_history *previous);

#endif
