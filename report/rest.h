/* rest.h - what is told of each stack beside its amounts: how old its outstanding blocks are, who
 * got them, and when it was called */
#ifndef REPORT_REST_H
#define REPORT_REST_H

#include <stdio.h>

#include "report/ages.h"
#include "report/export.h"
#include "report/takers.h"

/* Of all stacks of a report. */
struct rest {
	struct ages *ages;
	struct takers *takers;
};

/* Find it out for @leaks, which are borrowed until rest_release().  Returns 0 or -ENOMEM, and
 * @rest is then empty. */
int rest_init(struct rest *rest, const struct leaks *leaks);

/* Print the lines of stack @i of the view, each after @indent: its ages, if anything of it is
 * outstanding, and when it was called by whom.  Errors are left in @out for ferror(). */
void rest_print(FILE *out, const struct export *export, const struct rest *rest, size_t i,
		const char *indent);

/* Release what @rest holds; an empty one is allowed. */
void rest_release(struct rest *rest);

#endif
