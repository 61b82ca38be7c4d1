/* stack_times.h - bytes and blocks outstanding of each stack over time, in slices
 *
 * Time is divided into equal slices, at most STACK_TIMES_SLICES of them: when they do not suffice
 * any more, two become one.  Only changes are kept, so memory is 24 bytes for each slice in which a
 * stack allocated or freed.
 */
#ifndef REPORT_STACK_TIMES_H
#define REPORT_STACK_TIMES_H

#include "report/live/live.h"

#define STACK_TIMES_SLICES 128 /* at least half of them are used, but for short recordings */

/* What is outstanding at the end of a slice, until the next such entry. */
struct stack_time {
	uint64_t slice;
	struct live_amount amount;
};

/* Of one stack; slices rise. */
struct stack_track {
	struct stack_time *all;
	size_t nr, room;
};

/* Of all stacks; slices is set by stack_times_finish(), and the last of them may be cut. */
struct stack_times {
	uint64_t start_ns, width_ns;
	size_t slices;
	size_t last;		 /* slice that anything happened in */
	struct stack_track *all; /* by number of stack */
	size_t nr, room;
	bool failed;
};

/* Nothing happened yet; time is counted from @start_ns.  *@out is NULL on failure.  Returns 0 or
 * -ENOMEM. */
int stack_times_new(struct stack_times **out, uint64_t start_ns);

/* For struct live_watch, with a struct stack_times as its arg. */
void stack_times_changed(void *times, const struct live_change *change);

/* The replay is over, which went up to @end_ns.  Returns 0 or -ENOMEM. */
int stack_times_finish(struct stack_times *times, uint64_t end_ns);

/* After stack_times_finish(): the track of stack @number; an empty one if nothing is known. */
struct stack_track stack_times_of(const struct stack_times *times, uint32_t number);

/* The end of slice @i, in nanoseconds from the start; the last one ends with the replay. */
uint64_t stack_times_until(const struct stack_times *times, size_t i, uint64_t end_ns);

/* Release @times; NULL is allowed. */
void stack_times_free(struct stack_times *times);

#endif
