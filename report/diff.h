/* diff.h - what is outstanding in one trace and not in another, stack by stack
 *
 * Stacks are the same if module (without its directory), function, source file and line of all
 * their frames are: so builds of a program at different places can be compared.  Of those that are
 * left over then, two are the same if module and function are, the first with the first and so on:
 * so can builds from changed sources.
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

struct diff_opts {
	enum diff_format format;
	size_t top; /* no more stacks than that, those that differ by the most bytes first; 0: all
		     */
};

/* Print how what is outstanding in @after differs from @before.  Both have places, and all stacks
 * in their views.  *@came is by how much those stacks grew that grew or are new, the others aside.
 * Returns 0 or -ENOMEM; errors of writing are left in @out for ferror(). */
int print_diff(FILE *out, const struct export *before, const struct export *after,
	       const struct diff_opts *opts, struct live_amount *came);

#endif
