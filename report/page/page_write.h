/* page_write.h - the page itself: the texts of web/, with the data in it */
#ifndef REPORT_PAGE_WRITE_H
#define REPORT_PAGE_WRITE_H

#include "report/base/json.h"

/* What the page is about. */
enum page_kind { PAGE_REPORT, PAGE_DIFF };

/* Print the page with the members of its data that @put, which is called with @arg, writes into the
 * object that is open, and returns 0 or -ENOMEM.  Returns what @put does; errors of writing are
 * left in @out for ferror(). */
int page_write(FILE *out, enum page_kind kind, int (*put)(struct json *json, const void *arg),
	       const void *arg);

#endif
