/* table_rows.h - parts of tables: fields of CSV (RFC 4180), frames below a row, what --top left out
 */
#ifndef REPORT_TABLE_ROWS_H
#define REPORT_TABLE_ROWS_H

#include <stdio.h>

#include "report/live/live.h"
#include "report/view/places.h"

/* Print @text, which went through text_escape(), between quotes.  Before what a spreadsheet would
 * take for a formula stands a '.  Errors of writing are left in @out for ferror(). */
void csv_text(FILE *out, const char *text);

/* Print the names of stack @i of @places, outermost first with ';' between, as one such field;
 * behind those of inlined functions stands " (inlined)", as in folded stacks. */
void csv_path(FILE *out, const struct places *places, size_t i);

/* Print that @nr of what is called @one, or @many if there are several, were left out, with @amount
 * outstanding of them; nothing when there are none.  Errors are left in @out for ferror(). */
void print_left_out(FILE *out, size_t nr, const char *one, const char *many,
		    struct live_amount amount);

/* The same of what there is no room for on a terminal, with the option that shows all. */
void print_limited(FILE *out, size_t nr, const char *one, const char *many,
		   struct live_amount amount);

/* Print the function of @place by its short name, and where it is in the source if that is known,
 * in the columns and with the colours of @opts; of NULL, for programs, by its whole name.  Errors
 * are left in @out for ferror(). */
void print_place(FILE *out, const struct place *place, const struct view_opts *opts);

/* Some frames of a stack that are to be printed; all is borrowed. */
struct place_range {
	const struct places *places;
	size_t stack;	 /* of the view */
	size_t from, to; /* frames, the innermost is 0; there may be less than @to */
	const char *indent, *remark_indent; /* before each line, and before one that is no frame */
};

/* Print them as lines, by @print behind the indent; of those that are repeated one each, and a line
 * that says how often, unless @opts wants all. */
void print_place_range(FILE *out, const struct place_range *range, const struct view_opts *opts,
		       void (*print)(FILE *out, const struct place *place,
				     const struct view_opts *opts));

#endif
