/* csv.h - one field of CSV, RFC 4180 */
#ifndef REPORT_CSV_H
#define REPORT_CSV_H

#include "report/view/places.h"

/* Print @text, which went through text_escape(), between quotes.  Before what a spreadsheet would
 * take for a formula stands a '.  Errors of writing are left in @out for ferror(). */
void csv_text(FILE *out, const char *text);

/* Print the names of stack @i of @places, outermost first with ';' between, as one such field;
 * behind those of inlined functions stands " (inlined)", as in folded stacks. */
void csv_path(FILE *out, const struct places *places, size_t i);

#endif
