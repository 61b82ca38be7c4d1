/* print_growth.h - what the figures of growth.h say: is it a leak, and what was there when
 *
 * Printers return 0 or -ENOMEM; errors of writing are left in @out for ferror().
 */
#ifndef REPORT_PRINT_GROWTH_H
#define REPORT_PRINT_GROWTH_H

#include "report/context/growth_rows.h"
#include "report/context/report_data.h"
#include "report/stats/growth.h"

#define GROWTH_REMARK \
	"A shape is evidence, not proof: a cache may grow for hours, and a leak may come to rest."

/* When slice @i of the @growth of @export ends, in nanoseconds from the start of the recording: at
 * the moment that is examined if it is the last one. */
uint64_t print_growth_until_ns(const struct report_data *export, const struct growth *growth,
			       size_t i);

/* Print the stacks of the view, those that grew first, with the figures and a label each; but in
 * CSV also what the labels mean. */
int print_growth(FILE *out, const struct report_data *export, const struct growth *growth,
		 const struct table_opts *opts);

/* What is outstanding of the view's stacks that are growing, which are *@nr, into *@sum. */
int print_growth_growing(const struct report_data *export, const struct growth *growth, size_t *nr,
			 struct live_amount *sum);

/* For people: @rows, of which at most @top groups are shown unless it is 0. */
int print_growth_text(FILE *out, const struct report_data *export, const struct growth_rows *rows,
		      size_t top);

/* Print what was outstanding of the view's stacks over time: as a plot of the most within each
 * slice, or as CSV or JSON. */
int print_timeline(FILE *out, const struct report_data *export, const struct growth *growth,
		   const struct table_opts *opts);

#endif
