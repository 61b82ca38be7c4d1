/* history.h - the last walk of a thread, for the next one to take over what is still so */
#ifndef DWUNW_HISTORY_H
#define DWUNW_HISTORY_H

#include "unwind/walk/walk.h"

/* The last walk of a thread. */
struct dwunw_history {
	uint64_t space; /* its serial number */
	uint64_t stack_end;
	uint64_t stale_from;
	uint32_t flags; /* of the registers, and of the sample */
	uint32_t sample_flags;
	uint32_t nr;	   /* frames; 0: nothing can be taken over */
	uint32_t nr_whole; /* the outer ones, of which the marks tell all that was read */
	bool by_none;
	enum dwunw_status status;
	struct dwunw_mark frames[DWUNW_MAX_FRAMES]; /* the outermost is the first */
};

/* The lowest stack pointer at which a frame of @p may be taken over, or UINT64_MAX; sets
 * p->history_at. */
uint64_t dwunw_history_begin(struct dwunw_pass *p);

/* Is @mark, frame p->nr at place number @place, of the history?  Then set p->taken and what else
 * the rest decides. */
bool dwunw_history_meets(struct dwunw_pass *p, const struct dwunw_mark *mark, uint32_t place);

/* Forget the walk before; NULL is allowed. */
void dwunw_history_clear(struct dwunw_history *history);

/* Keep the walk of @p, which is finished.  @whole: it was a fast one. */
void dwunw_history_keep(const struct dwunw_pass *p, bool whole);

#endif
