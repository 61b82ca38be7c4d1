/* unwind_once.h - unwind one stack, without a history, into frames */
#ifndef TESTS_UNWIND_ONCE_H
#define TESTS_UNWIND_ONCE_H

#include "unwind/dwunw.h"

/* *@status says why it ended, DWUNW_STATUS_NR after an error; for @max see dwunw_capture(). Returns
 * the number of frames, or the error. */
static inline int unwind_once(struct dwunw_space *space, const struct dwunw_sample *sample,
			      struct dwunw_frame *frames, size_t max, enum dwunw_status *status)
{
	struct dwunw_result result;
	int err = dwunw_capture(space, sample, frames, max, &result);

	*status = err ? DWUNW_STATUS_NR : result.status;
	return err ? err : (int)result.nr_frames;
}

/* A sample without anything special. */
#define PLAIN_SAMPLE(rs, stack_bytes)                           \
	(&(const struct dwunw_sample){.regs = (rs),             \
				      .stack = (stack_bytes),   \
				      .stale_from = UINT64_MAX, \
				      .unchanged_from = UINT64_MAX})

#endif
