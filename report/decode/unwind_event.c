/* unwind_event.c - see capture.h */
#include "report/decode/unwind_event.h"

#include <errno.h>
#include <stdlib.h>

#include "report/decode/unwind_history.h"
#include "report/decode/stack_history.h"
#include "report/stats/stacks.h"

struct capture {
	struct dwunw *dw;
	struct spaces *spaces;
	struct histories *histories;
	struct previous *previous; /* borrowed, of the chunk at hand */
	bool raw;
};

int capture_new(struct capture **out, struct dwunw *dw, struct spaces *spaces, bool raw)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	int err;

	*out = NULL;
	if (!capture)
		return -ENOMEM;
	capture->dw = dw;
	capture->spaces = spaces;
	capture->raw = raw;
	err = histories_new(&capture->histories);
	if (err)
		capture_free(capture);
	else
		*out = capture;
	return err;
}

void capture_begin(struct capture *capture, struct previous *previous)
{
	capture->previous = previous;
	histories_trim(capture->histories);
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

int capture_stack(struct capture *capture, const struct mlk_event *event, uint32_t *id)
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
		histories_forget(capture->histories, event->tgid, event->tid);
		return dwunw_stack_intern(capture->dw, NULL, 0, DWUNW_STATUS_NO_CFI, id);
	}
	err = spaces_find(capture->spaces, event->tgid, event->time_ns, &space);
	if (err)
		return err;
	sample.history = histories_get(capture->histories, event->tgid, event->tid);
	err = dwunw_capture(space->modules, &sample, NULL, STACK_MAX_FRAMES, &result);
	if (err)
		return err;
	*id = result.id;
	is_longer = previous_take(capture->previous, event, &longer, &stale_from);
	if (!is_longer ||
	    (result.status != DWUNW_STATUS_TRUNCATED && result.status != DWUNW_STATUS_DEGRADED))
		return 0;
	sample.stack = &longer;
	sample.stale_from = stale_from;
	return capture_longer(space, &sample, id);
}

void capture_note(struct capture *capture, const struct mlk_event *event)
{
	struct mlk_event first = *event;
	struct dwunw_stack stack;
	uint64_t stale_from;

	first.stack_same_from = UINT64_MAX;
	previous_take(capture->previous, &first, &stack, &stale_from);
}

void capture_forget(struct capture *capture, uint32_t tgid)
{
	previous_forget(capture->previous, tgid);
}

void capture_free(struct capture *capture)
{
	if (!capture)
		return;
	histories_free(capture->histories);
	free(capture);
}
