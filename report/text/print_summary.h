/* print_summary.h - what is printed above a leak tree: whose trace it is, its totals, and what is
 * missing */
#ifndef REPORT_PRINT_SUMMARY_H
#define REPORT_PRINT_SUMMARY_H

#include <stdio.h>

#include "report/replay/replay.h"

/* Print the summary of the trace in file @path, recorded as @meta says: the totals, and of several
 * processes a line for each, if @each or of a chosen one, else for those of each program.  Errors
 * of writing are left in @out for ferror().  Returns 0 or -ENOMEM. */
int print_summary(FILE *out, const char *path, const struct mlk_meta *meta,
		  const struct replay *leaks, bool each);

#endif
