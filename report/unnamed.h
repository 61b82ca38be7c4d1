/* unnamed.h - the modules whose functions have no names, and what would give them names */
#ifndef REPORT_UNNAMED_H
#define REPORT_UNNAMED_H

#include <stdio.h>

#include "report/leaks.h"
#include "report/view.h"

/*
 * Print to @out a line for each module of @leaks in which frames of @view have no name: what to
 * install or to give.  Nothing when all have names, or when none were looked for.  Errors of @out
 * are left in it for ferror().  Returns 0 or -ENOMEM.
 */
int print_unnamed(FILE *out, const struct view *view, const struct leaks *leaks);

#endif
