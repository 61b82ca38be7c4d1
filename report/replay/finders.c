/* finders.c - see finders.h */
#include "report/replay/finders.h"

#include <errno.h>

#include "report/decode/unwind_event.h"

/* Apart from the threads' events, between which it does not stand. */
static int unwind_next(struct overruns *overruns, struct capture *capture,
		       const struct mlk_overrun *overrun)
{
	struct mlk_event at = overrun->at;
	uint32_t id;
	int err;

	at.stack_same_from = UINT64_MAX;
	err = capture_stack(capture, &at, &id);
	if (!err)
		overruns_found_by(overruns, id);
	return err;
}

int finders_unwind(struct overruns *overruns, struct mlk_reader *trace, struct dwunw *dw,
		   struct spaces *spaces)
{
	struct previous *none = NULL;
	struct capture *capture;
	struct mlk_record record;
	bool raw = mlk_reader_meta(trace)->stack_mode == MLK_STACK_RAW;
	int more = 1, err;

	err = capture_new(&capture, dw, spaces, raw);
	if (!err)
		err = previous_new(&none, NULL, NULL);
	if (!err)
		capture_begin(capture, none);
	mlk_reader_rewind(trace, MLK_RECORD_OVERRUN);
	while (!err && (more = mlk_reader_next(trace, &record)) > 0)
		err = unwind_next(overruns, capture, &record.overrun);
	capture_free(capture);
	previous_free(none);
	return err ? err : more;
}
