/* finders.c - see finders.h */
#include "report/replay/finders.h"

#include <errno.h>

#include "report/decode/event_unwinder.h"

/* Separate from the threads' events, because it is not between them. */
static int unwind_next(struct overruns *overruns, struct event_unwinder *capture,
		       const struct mlk_overrun *overrun)
{
	struct mlk_event at = overrun->at;
	uint32_t id;
	int err;

	at.stack_same_from = UINT64_MAX;
	err = event_unwinder_stack(capture, &at, &id);
	if (!err)
		overruns_found_by(overruns, id);
	return err;
}

int finders_unwind(struct overruns *overruns, struct mlk_reader *trace, struct dwunw *dw,
		   struct address_spaces *spaces)
{
	struct stack_history *none = NULL;
	struct event_unwinder *capture;
	struct mlk_record record;
	bool raw = mlk_reader_meta(trace)->stack_mode == MLK_STACK_RAW;
	int more = 1, err;

	err = event_unwinder_new(&capture, dw, spaces, raw);
	if (!err)
		err = stack_history_new(&none, NULL, NULL);
	if (!err)
		event_unwinder_begin(capture, none);
	mlk_reader_rewind(trace, MLK_RECORD_OVERRUN);
	while (!err && (more = mlk_reader_next(trace, &record)) > 0)
		err = unwind_next(overruns, capture, &record.overrun);
	event_unwinder_free(capture);
	stack_history_free(none);
	return err ? err : more;
}
