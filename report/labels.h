/* labels.h - what a line of the report says of a frame, each distinct text stored once
 *
 * All text in here has gone through text_escape(): it may be printed as it is.
 */
#ifndef REPORT_LABELS_H
#define REPORT_LABELS_H

#include <stddef.h>
#include <stdint.h>

struct labels; /* opaque */

struct label {
	char *name;	/* a function, MODULE+0xADDR, or a remark in brackets */
	char *location; /* FILE:LINE, or "" when not known */
};

/* No labels yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int labels_new(struct labels **out);

/*
 * Find the label with this name and location (any bytes), or add it.
 * On success *@number is its number, from 0 in the order of addition.  Returns 0 or -ENOMEM.
 */
int labels_intern(struct labels *labels, const char *name, const char *location, uint32_t *number);

/* Labels so far. */
size_t labels_nr(const struct labels *labels);

/* Label @number (below labels_nr()); valid until the next labels_intern(), its strings until
 * labels_free(). */
const struct label *labels_get(const struct labels *labels, uint32_t number);

/* Release @labels; NULL is allowed. */
void labels_free(struct labels *labels);

#endif
