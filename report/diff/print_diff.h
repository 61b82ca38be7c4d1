/* print_diff.h - the formats of a difference
 *
 * Each returns 0 or -ENOMEM; errors of writing are left in @out for ferror().
 */
#ifndef REPORT_PRINT_DIFF_H
#define REPORT_PRINT_DIFF_H

#include "report/diff/diff.h"

/* How a difference is printed. */
enum diff_format {
	DIFF_TEXT,
	DIFF_FOLDED, /* COMM;FRAME;FRAME BEFORE AFTER: what difffolded.pl makes, for flamegraph.pl
		      */
	DIFF_CSV,
	DIFF_JSON, /* with the schema of doc/report-json.md */
	DIFF_HTML, /* a page with a flame graph */
};

/* For print_diff(). */
struct diff_opts {
	enum diff_format format;
	size_t top; /* no more stacks than that, those that differ by the most bytes first; 0: all
		     */
};

/* Print @diff. */
int print_diff(FILE *out, const struct diff *diff, const struct diff_opts *opts);

/* Print it as DIFF_FOLDED, of the first @top stacks (0: all), sorted by their text. */
int print_diff_folded(FILE *out, const struct diff *diff, size_t top);

/* Print it as DIFF_HTML, of the first @top stacks (0: all). */
int print_diff_html(FILE *out, const struct diff *diff, size_t top);

#endif
