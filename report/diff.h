/* diff.h - what is outstanding in one trace and not in another, stack by stack
 *
 * Stacks are the same if module (without its directory), function, source file and line of all
 * their frames are: so builds of a program at different places, or from changed sources, can be
 * compared.
 */
#ifndef REPORT_DIFF_H
#define REPORT_DIFF_H

#include "report/export.h"

/* How a difference is printed. */
enum diff_format {
	DIFF_TEXT,
	DIFF_FOLDED, /* COMM;FRAME;FRAME BEFORE AFTER: what difffolded.pl makes, for flamegraph.pl
		      */
	DIFF_CSV,
	DIFF_JSON, /* with the schema of doc/report-json.md */
};

/* Print how what is outstanding in @after differs from @before: no more than @top stacks, if that
 * is not 0, those that differ by the most bytes first.  Both have places, and all stacks in their
 * views. Returns 0 or -ENOMEM; errors of writing are left in @out for ferror(). */
int print_diff(FILE *out, const struct export *before, const struct export *after,
	       enum diff_format format, size_t top);

#endif
