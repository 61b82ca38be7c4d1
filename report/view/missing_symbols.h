/* missing_symbols.h - the modules whose functions have no names, and what would give them names */
#ifndef REPORT_UNNAMED_H
#define REPORT_UNNAMED_H

#include <stdio.h>

#include "report/replay/replay.h"
#include "report/view/view.h"

struct unnamed; /* opaque */

/* Look for the modules of @leaks in which frames of @view have no name, and begin to find out what
 * to install; both are borrowed until unnamed_free().  *@out is NULL on failure.  Returns 0 or
 * -ENOMEM. */
int unnamed_new(struct unnamed **out, const struct view *view, const struct leaks *leaks);

/* Print to @out a line for each: what to install or to give.  Nothing when all have names, or when
 * none were looked for.  Errors of @out are left in it for ferror().  Returns 0 or -ENOMEM. */
int unnamed_print(struct unnamed *unnamed, FILE *out);

/* Release @unnamed; NULL is allowed. */
void unnamed_free(struct unnamed *unnamed);

#endif
