/* arena_hint.h - where a few large blocks are an arena's, whose users no stack shows */
#ifndef REPORT_ARENA_HINT_H
#define REPORT_ARENA_HINT_H

#include "report/context/growth_rows.h"

/* Print a line if the blocks of @row, with @amount outstanding, are large and come from a function
 * that is named like one of an arena: palloc, obstack, extents of jemalloc.  Errors are left in
 * @out for ferror(). */
void arena_hint_print(FILE *out, const struct report_data *export, const struct growth_row *row,
		      struct live_amount amount);

#endif
