/* previous.h - for each thread of a trace, the stack that it had last: what a later one that was
 * cut may lack
 */
#ifndef REPORT_PREVIOUS_H
#define REPORT_PREVIOUS_H

#include <stdbool.h>

#include "format/trace.h"
#include "unwind/dwunw.h"

struct previous; /* opaque */

/* None yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int previous_new(struct previous **out);

/*
 * Keep the stack of @event, an ALLOC in the order of the trace or a record of MLK_RECORD_STACK,
 * which has stack_same_from UINT64_MAX.  Without room for it, it is forgotten.
 *
 * Returns true when bytes above it are at hand that are older: then *@stack is @event's with those,
 * which begin at *@stale_from; valid until the next call.
 */
bool previous_take(struct previous *previous, const struct mlk_event *event,
		   struct dwunw_stack *stack, uint64_t *stale_from);

/* Forget the stacks of all threads of process @tgid: it runs another program. */
void previous_forget(struct previous *previous, uint32_t tgid);

/* Release @previous; NULL is allowed. */
void previous_free(struct previous *previous);

#endif
