/* print_ci.h - what --fail-on-leak says, as CI systems read it
 *
 * Both need the report's places and verdict, and return 0 or -ENOMEM; errors of writing are left in
 * @out for ferror().
 */
#ifndef REPORT_PRINT_CI_H
#define REPORT_PRINT_CI_H

#include "report/context/report_data.h"

/* JUnit's XML: a test case that fails for each stack shown, or one that passes. */
int print_junit(FILE *out, const struct report_data *export);

/* Workflow commands of GitHub Actions, which make annotations of the source: one for each stack. */
int print_github(FILE *out, const struct report_data *export);

/* The innermost place of stack @i of the view that is in the sources of the project: below @folder,
 * else in the recorded program; else any with a line, or the innermost.  *@file is its path, below
 * @folder as seen from there. */
const struct place *ci_place(const struct report_data *export, size_t i, const char *folder,
			     const char **file);

#endif
