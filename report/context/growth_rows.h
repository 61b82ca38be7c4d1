/* growth_rows.h - the stacks of a view by how they grew: what is printed of each, and their order
 */
#ifndef REPORT_GROWTH_ROWS_H
#define REPORT_GROWTH_ROWS_H

#include "report/context/report_data.h"
#include "report/stats/growth_shape.h"
#include <stdbool.h>

/* How a stack grew. */
struct growth_row {
	size_t i; /* in the view */
	enum growth_shape shape;
	double per_minute;     /* bytes that it grew in the second half of the time, net */
	double low, high;      /* the same in a sample: within these in 95 of 100 cases */
	double freed;	       /* share of its blocks */
	uint64_t samples;      /* outstanding blocks that are in the trace */
	uint64_t late_samples; /* those of them that the second half of the time allocated */
	struct growth_stack growth;
	const struct growth *from;
	uint32_t group; /* rows of one group are next to each other */
	double rank;	/* of its group: the growth by which it is ordered */
};

/* All of a view: what grows is first. */
struct growth_rows {
	struct growth_row *all;
	size_t nr;
	struct stack_names *names;
};

/* Make the rows of @export's view.  Groups are stacks of one process and shape with the same
 * innermost functions; without places in @export, each stack is a group.  @rows is to be released
 * in any case.  Stacks with the same functions and lines have one shape, that of all of them.
 * Returns 0 or -ENOMEM. */
int growth_rows_init(struct growth_rows *rows, const struct report_data *export,
		     const struct growth *growth);

/* The innermost functions of the view's stack @i, as "malloc_it < caller < its caller", also if its
 * top leaves it out; names are @whole, or as people write them.  A string that the caller frees, or
 * NULL when there is no memory. */
char *growth_rows_innermost(const struct growth_rows *rows, const struct view *view, size_t i,
			    bool whole);

/* How many rows the group of @rows->all[@i], which is its first, has. */
size_t growth_rows_in_group(const struct growth_rows *rows, size_t i);

/* What @nr rows have outstanding. */
struct live_amount growth_rows_amount(const struct report_data *export,
				      const struct growth_row *rows, size_t nr);

/* One row for @nr of a group: their sums, and what cannot be summed up of the first. */
struct growth_row growth_rows_sum(const struct report_data *export, const struct growth_row *rows,
				  size_t nr);

/* Release what @rows holds. */
void growth_rows_release(struct growth_rows *rows);

#endif
