/* stack_stats.h - what happened to the blocks of each stack while the trace was replayed
 *
 * Memory: some words for each distinct stack and for each thread, whatever the trace's length.
 */
#ifndef REPORT_FIGURES_H
#define REPORT_FIGURES_H

#include "report/live/live.h"
#include "report/stats/stacks.h"

struct figures; /* opaque: between the events of a replay */

/* No events yet; the stacks whose figures change are those of @stacks, borrowed until
 * figures_free().  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int figures_new(struct figures **out, struct stacks *stacks);

/* Blocks that were freed so many nanoseconds after they were given out, or sooner, are temporary,
 * too: not only those that their thread freed before it allocated or freed another. */
void figures_set_temporary(struct figures *figures, uint64_t ns);

/* The next event of the trace, be it about a block that the report is about or not; to be told
 * before what it changes. */
void figures_event(struct figures *figures, const struct mlk_event *event);

/* For struct live_watch, with a struct figures as its arg. */
void figures_changed(void *figures, const struct live_change *change);

/* The replay is over: fill in the shares of the peak.  Returns 0, or -ENOMEM when memory was short
 * at any time before. */
int figures_finish(struct figures *figures);

/* Most bytes that were outstanding at any time, with the blocks at that time. */
struct live_amount figures_peak(const struct figures *figures);

/* Release @figures; NULL is allowed. */
void figures_free(struct figures *figures);

#endif
