/* stack_stats.h - what happened to the blocks of each stack while the trace was replayed
 *
 * Memory: some words for each distinct stack and for each thread, whatever the trace's length.
 */
#ifndef REPORT_STACK_STATS_H
#define REPORT_STACK_STATS_H

#include "report/base/hash_index.h"
#include "report/live/live.h"
#include "report/stats/stacks.h"

/* What a thread was given by its last event. */
struct last_event {
	uint32_t tgid, tid;
	uint64_t addr; /* 0: nothing */
};

/* Between the events of a replay. */
struct stack_stats {
	struct stacks *stacks;
	struct live_amount now, peak;
	uint64_t nr_peaks;	      /* how often the peak rose */
	INTERN_OF(struct last_event); /* of each thread */
	size_t last;	/* the thread of the last event: often that of the next, too */
	uint64_t given; /* what the thread of this event was given by the one before; 0: nothing */
	uint64_t temporary_ns;
	bool failed;
};

/* No events yet; the stacks whose figures change are those of @stacks, borrowed until
 * stack_stats_free().  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int stack_stats_new(struct stack_stats **out, struct stacks *stacks);

/* Blocks that were freed at most this many nanoseconds after their allocation are temporary, too:
 * not only those that their thread freed before it allocated or freed another. */
void stack_stats_set_temporary(struct stack_stats *figures, uint64_t ns);

/* The next event of the trace, be it about a block that the report is about or not; to be told
 * before what it changes. */
void stack_stats_event(struct stack_stats *figures, const struct mlk_event *event);

/* The threads of processes of which @is_gone() says so, with @arg, have no more events. */
void stack_stats_forget(struct stack_stats *figures, bool (*is_gone)(void *arg, uint32_t tgid),
			void *arg);

/* Stack @number, of which nothing is outstanding, counts from the beginning again. */
void stack_stats_restart(struct stack_stats *figures, uint32_t number);

/* For struct live_watch, with a struct stack_stats as its arg. */
void stack_stats_changed(void *figures, const struct live_change *change);

/* The replay is over: fill in the shares of the peak.  Returns 0, or -ENOMEM when memory was short
 * at any time before. */
int stack_stats_finish(struct stack_stats *figures);

/* Release @figures; NULL is allowed. */
void stack_stats_free(struct stack_stats *figures);

#endif
