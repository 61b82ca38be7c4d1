/* unwind_event.h - the stacks of a trace's events, unwound with what is known of those before
 *
 * Memory: what histories.h keeps of each thread.
 */
#ifndef REPORT_CAPTURE_H
#define REPORT_CAPTURE_H

#include "format/trace.h"
#include "report/decode/stack_history.h"
#include "report/trace/address_spaces.h"

struct capture; /* opaque */

/* Stacks of processes in @spaces, for @dw, both borrowed until capture_free(); @raw: their bytes
 * are in the trace as they were.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int capture_new(struct capture **out, struct dwunw *dw, struct spaces *spaces, bool raw);

/* A chunk begins; @previous, of which it is the first, is borrowed until the next one does. */
void capture_begin(struct capture *capture, struct previous *previous);

/* Unwind the stack of @event, the next of its thread.  *@id is the unwinder's for it.  Returns 0 or
 * -ENOMEM. */
int capture_stack(struct capture *capture, const struct mlk_event *event, uint32_t *id);

/* What a thread was doing at attach, which has the form of @event: the first that is known of its
 * stack. */
void capture_note(struct capture *capture, const struct mlk_event *event);

/* Process @tgid has begun, or started another program: its stacks are new. */
void capture_forget(struct capture *capture, uint32_t tgid);

/* Release @capture; NULL is allowed. */
void capture_free(struct capture *capture);

#endif
