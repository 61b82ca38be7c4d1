/* print_folded.h - folded stacks, one a line, for flamegraph.pl, inferno, speedscope and others */
#ifndef REPORT_PRINT_FOLDED_H
#define REPORT_PRINT_FOLDED_H

#include <stdio.h>

#include "report/view/view.h"

/*
 * Turn @name into one frame of the folded format: no ';', no control character, no space at its
 * ends, not empty, "-" or "--", no '#' at its beginning, no space and number at its end.
 * Returns a string that the caller frees, or NULL when there is no memory.
 */
char *folded_frame(const char *name);

/*
 * Print the stacks of @view as `COMM;FRAME;FRAME COST`, sorted by bytes of the line, equal stacks
 * as one.  Stacks whose cost is 0 are left out; a count above 2^53-1 is printed as that.
 * Returns 0 or -ENOMEM; errors of writing are left in @out for ferror().
 */
int print_folded(FILE *out, const char *comm, const struct view *view);

#endif
