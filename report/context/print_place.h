/* print_place.h - a frame as a line of text, below what a table says of its stack */
#ifndef REPORT_PRINT_PLACE_H
#define REPORT_PRINT_PLACE_H

#include <stdio.h>

#include "report/view/places.h"

/* Print its function, and where it is in the source if that is known.  @color: with escape
 * sequences.  Errors are left in @out for ferror(). */
void print_place(FILE *out, const struct place *place, bool color);

#endif
