/* print_html.h - the page of flame.html: a flame graph, and a table of the heaviest stacks */
#ifndef REPORT_PRINT_HTML_H
#define REPORT_PRINT_HTML_H

#include "report/base/json.h"
#include "report/view/places.h"

#define HTML_MAX_STACKS 50 /* in the table below the graph */

/* Print the page with the members of its data that @put, which is called with @arg, writes into the
 * object that is open, and returns 0 or -ENOMEM.  Returns what @put does; errors of writing are
 * left in @out for ferror(). */
int html_page(FILE *out, int (*put)(struct json *json, const void *arg), const void *arg);

/* Write @place as the page shows it, an element of an array.  Returns 0 or -ENOMEM. */
int html_frame(struct json *json, const struct place *place);

#endif
