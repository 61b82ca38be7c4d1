/* stack_stats.h - what happened to the blocks of each stack while the trace was replayed
 *
 * Memory: some words for each distinct stack and for each thread, whatever the trace's length.
 */
#ifndef REPORT_STACK_STATS_H
#define REPORT_STACK_STATS_H

#include "report/live/live.h"
#include "report/stats/stacks.h"

struct stack_stats; /* opaque: between the events of a replay */

/* No events yet; the stacks whose figures change are those of @stacks, borrowed until
 * stack_stats_free().  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int stack_stats_new(struct stack_stats **out, struct stacks *stacks);

/* Blocks that were freed at most this many nanoseconds after their allocation are temporary, too:
 * not only those that their thread freed before it allocated or freed another. */
void stack_stats_set_temporary(struct stack_stats *figures, uint64_t ns);

/* The next event of the trace, be it about a block that the report is about or not; to be told
 * before what it changes. */
void stack_stats_event(struct stack_stats *figures, const struct mlk_event *event);

/* For struct live_watch, with a struct stack_stats as its arg. */
void stack_stats_changed(void *figures, const struct live_change *change);

/* The replay is over: fill in the shares of the peak.  Returns 0, or -ENOMEM when memory was short
 * at any time before. */
int stack_stats_finish(struct stack_stats *figures);

/* Most bytes that were outstanding at any time, with the blocks at that time. */
struct live_amount stack_stats_peak(const struct stack_stats *figures);

/* Release @figures; NULL is allowed. */
void stack_stats_free(struct stack_stats *figures);

#endif
