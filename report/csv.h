/* csv.h - one field of CSV, RFC 4180 */
#ifndef REPORT_CSV_H
#define REPORT_CSV_H

#include <stdio.h>

/* Print @text, which went through text_escape(), between quotes.  Before what a spreadsheet would
 * take for a formula stands a '.  Errors of writing are left in @out for ferror(). */
void csv_text(FILE *out, const char *text);

/* The two halves of it, for a field that is made of parts: the first part says whether there is a
 * formula; quotes are the caller's. */
void csv_guard(FILE *out, const char *first);
void csv_part(FILE *out, const char *text);

#endif
