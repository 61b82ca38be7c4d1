/* columns.h - the list of stacks: as many columns as the screen has room for */
#ifndef REPORT_COLUMNS_H
#define REPORT_COLUMNS_H

#include "report/top/screen/screen_state.h"

/* Of the list of stacks. */
enum column {
	COLUMN_BYTES,
	COLUMN_RATE,
	COLUMN_BLOCKS,
	COLUMN_FREED,
	COLUMN_AGE,
	COLUMN_TREND,
	COLUMN_NR,
};

/* How wide each is; 0: there is no room for it. */
struct columns {
	int width[COLUMN_NR];
	int stack; /* where the last one begins, which has the rest */
};

/* What the @nr rows in view, which begin with @first of those shown, need.  A narrow screen leaves
 * out what says least, and never what sorts. */
void columns_fit(struct columns *columns, const struct screen *screen, size_t first, size_t nr);

/* Put the names of the columns in line @y; that which sorts has a mark. */
void columns_head(const struct columns *columns, const struct screen *screen, int y);

/* Put @row in line @y; @from tells it from others, as for stack_names_line().  Returns 0 or
 * -ENOMEM.
 */
int columns_row(const struct columns *columns, const struct screen *screen, int y,
		const struct top_row *row, size_t from);

#endif
