/* event_unwinder.h - the stacks of a trace's events, unwound with what is known of those before
 *
 * Memory: what unwind_history.h keeps of each thread.
 */
#ifndef REPORT_EVENT_UNWINDER_H
#define REPORT_EVENT_UNWINDER_H

#include "format/trace.h"
#include "report/decode/stack_history.h"
#include "report/trace/address_spaces.h"

struct event_unwinder; /* opaque */

/* Stacks of processes in @spaces, for @dw, both borrowed until event_unwinder_free(); @raw: their
 * bytes are in the trace as they were.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int event_unwinder_new(struct event_unwinder **out, struct dwunw *dw, struct address_spaces *spaces,
		       bool raw);

/* A chunk begins; @previous, of which it is the first, is borrowed until the next one does. */
void event_unwinder_begin(struct event_unwinder *capture, struct stack_history *previous);

/* Unwind the stack of @event, the next of its thread.  *@id is the unwinder's for it.  Returns 0 or
 * -ENOMEM. */
int event_unwinder_stack(struct event_unwinder *capture, const struct mlk_event *event,
			 uint32_t *id);

/* What a thread was doing at attach, which has the form of @event: the first that is known of its
 * stack. */
void event_unwinder_add(struct event_unwinder *capture, const struct mlk_event *event);

/* Process @tgid has begun, or started another program: its stacks are new. */
void event_unwinder_forget(struct event_unwinder *capture, uint32_t tgid);

/* Process @tgid has ended: release what is kept of its threads.  The stacks before the first chunk
 * must have been empty. */
void event_unwinder_end(struct event_unwinder *capture, uint32_t tgid);

/* Release @capture; NULL is allowed. */
void event_unwinder_free(struct event_unwinder *capture);

#endif
