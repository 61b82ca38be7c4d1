/* missing_symbols.h - the modules whose functions have no names, and what would give them names */
#ifndef REPORT_MISSING_SYMBOLS_H
#define REPORT_MISSING_SYMBOLS_H

#include <stdio.h>

#include "report/replay/replay.h"
#include "report/view/view.h"

struct missing_symbols; /* opaque */

/* Look for the modules of @leaks in which frames of @view have no name, and begin to find out what
 * to install; both are borrowed until missing_symbols_free().  *@out is NULL on failure.  Returns 0
 * or -ENOMEM. */
int missing_symbols_new(struct missing_symbols **out, const struct view *view,
			const struct replay *leaks);

/* Print to @out a line for each: what to install or to give.  Nothing when all have names, or when
 * none were looked for.  Errors of @out are left in it for ferror().  Returns 0 or -ENOMEM. */
int missing_symbols_print(struct missing_symbols *unnamed, FILE *out);

/* Release @unnamed; NULL is allowed. */
void missing_symbols_free(struct missing_symbols *unnamed);

#endif
