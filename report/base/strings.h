/* strings.h - a table of distinct strings, each with a number, as export formats have them */
#ifndef REPORT_STRINGS_H
#define REPORT_STRINGS_H

#include <stddef.h>
#include <stdint.h>

#include "report/base/hash_index.h"

/* To be read by all. */
struct strings {
	INTERN_OF(char *);
};

/* A table that has only "", which is number 0.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int strings_new(struct strings **out);

/* Find @text or add a copy of it.  *@number counts in the order of addition.  Returns 0 or -ENOMEM.
 */
int strings_intern(struct strings *strings, const char *text, uint32_t *number);

/* Release @strings; NULL is allowed. */
void strings_free(struct strings *strings);

#endif
