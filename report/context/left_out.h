/* left_out.h - the line that says what --top left out */
#ifndef REPORT_LEFT_OUT_H
#define REPORT_LEFT_OUT_H

#include <stdio.h>

#include "report/live/live.h"

/* Print that @nr of what is called @one, or @many if there are several, were left out, with @amount
 * outstanding of them; nothing when there are none.  Errors are left in @out for ferror(). */
void print_left_out(FILE *out, size_t nr, const char *one, const char *many,
		    struct live_amount amount);

#endif
