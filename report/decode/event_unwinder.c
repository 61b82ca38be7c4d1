/* event_unwinder.c - see event_unwinder.h */
#include "report/decode/event_unwinder.h"

#include <errno.h>
#include <stdlib.h>

#include "report/decode/merge_frames.h"
#include "report/decode/stack_history.h"
#include "report/decode/unwind_history.h"
#include "report/stats/stacks.h"

struct event_unwinder {
	struct dwunw *dw;
	struct address_spaces *spaces;
	struct unwind_history *histories;
	struct stack_history *previous; /* borrowed, of the current chunk */
	bool raw;
	struct merged_stacks merged;
};

int event_unwinder_new(struct event_unwinder **out, struct dwunw *dw, struct address_spaces *spaces,
		       bool raw)
{
	struct event_unwinder *capture = calloc(1, sizeof(*capture));
	int err;

	*out = NULL;
	if (!capture)
		return -ENOMEM;
	capture->dw = dw;
	capture->spaces = spaces;
	capture->raw = raw;
	err = unwind_history_new(&capture->histories);
	if (err)
		event_unwinder_free(capture);
	else
		*out = capture;
	return err;
}

void event_unwinder_begin(struct event_unwinder *capture, struct stack_history *previous)
{
	capture->previous = previous;
	unwind_history_trim(capture->histories);
	merge_frames_begin(&capture->merged);
}

/* Unwind @sample, a stack that was cut with the bytes that the thread had above it earlier.  Only
 * if that leads to the outermost frame does it tell more: *id is then that of the whole. */
static int capture_longer(const struct space *space, struct dwunw_sample *sample, uint32_t *id)
{
	struct dwunw_result result;
	int err;

	sample->history = NULL;
	err = dwunw_capture(space->modules, sample, NULL, STACK_MAX_FRAMES, &result);
	if (!err && result.status == DWUNW_STATUS_STALE)
		*id = result.id;
	return err;
}

/* The process in whose address space @event's stack is. */
static uint32_t space_of(const struct mlk_event *event)
{
	bool of_kernel = !event->tgid && event->nr_regs > MLK_SPACE_REG;

	return of_kernel ? (uint32_t)event->regs[MLK_SPACE_REG] : event->tgid;
}

/* The stack of @event as machine code has it. */
static int unwind_stack(struct event_unwinder *capture, const struct mlk_event *event, uint32_t *id)
{
	uint32_t flags = event->flags & 0xff;
	const struct space *space;
	struct dwunw_regset regs;
	struct dwunw_result result;
	struct dwunw_stack stack = {
		.addr = event->regs[MLK_SP_REG],
		.bytes = event->stack,
		.len = event->stack_len,
	};
	struct dwunw_stack longer;
	struct dwunw_sample sample = {
		.regs = &regs,
		.stack = &stack,
		.stale_from = UINT64_MAX,
		.unchanged_from = event->stack_same_from,
		.flags = DWUNW_SAMPLE_GUESS,
	};
	uint64_t stale_from;
	bool is_longer;
	int err;

	/* A return address of 0 may be one that the trace left out: it must not pass for the end.
	 */
	if (!capture->raw)
		flags |= DWUNW_EVENT_STACK_FAULT;
	/* registers of another architecture: a stack without frames */
	if (dwunw_regset_prepare(&regs, event->regs, event->nr_regs, flags)) {
		unwind_history_forget(capture->histories, event->tgid, event->tid);
		return dwunw_stack_intern(capture->dw, NULL, 0, DWUNW_STATUS_NO_CFI, id);
	}
	err = address_spaces_find(capture->spaces, space_of(event), event->time_ns, &space);
	if (err)
		return err;
	sample.history = unwind_history_get(capture->histories, space_of(event), event->tid);
	err = dwunw_capture(space->modules, &sample, NULL, STACK_MAX_FRAMES, &result);
	if (err)
		return err;
	*id = result.id;
	/* What lies below a stack of user space in a kernel's trace was never on it. */
	if (!event->tgid)
		return 0;
	is_longer = stack_history_pop(capture->previous, event, &longer, &stale_from);
	if (!is_longer ||
	    (result.status != DWUNW_STATUS_TRUNCATED && result.status != DWUNW_STATUS_DEGRADED))
		return 0;
	sample.stack = &longer;
	sample.stale_from = stale_from;
	return capture_longer(space, &sample, id);
}

int event_unwinder_stack(struct event_unwinder *capture, const struct mlk_event *event,
			 uint32_t *id)
{
	const struct trace_modules *images = capture->spaces->images;
	int err = unwind_stack(capture, event, id);

	if (!err && event->nr_frames && images)
		err = merge_frames(&capture->merged, capture->dw, &images->interpreted, event, id);
	return err;
}

void event_unwinder_add(struct event_unwinder *capture, const struct mlk_event *event)
{
	struct mlk_event first = *event;
	struct dwunw_stack stack;
	uint64_t stale_from;

	first.stack_same_from = UINT64_MAX;
	stack_history_pop(capture->previous, &first, &stack, &stale_from);
}

void event_unwinder_forget(struct event_unwinder *capture, uint32_t tgid)
{
	stack_history_forget(capture->previous, tgid);
}

void event_unwinder_end(struct event_unwinder *capture, uint32_t tgid)
{
	stack_history_end(capture->previous, tgid);
	unwind_history_end(capture->histories, tgid);
}

void event_unwinder_free(struct event_unwinder *capture)
{
	if (!capture)
		return;
	unwind_history_free(capture->histories);
	free(capture);
}
