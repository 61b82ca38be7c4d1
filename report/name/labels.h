/* labels.h - what a line of the report says of a frame, each distinct text stored once
 *
 * All text in here has gone through text_escape(): it may be printed as it is.
 */
#ifndef REPORT_LABELS_H
#define REPORT_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct labels; /* opaque */

#define LABELS_NO_MODULE 0 /* of labels that are not of code */

struct label {
	char *name;	 /* a function, MODULE+0xADDR, or a remark in brackets */
	char *location;	 /* FILE:LINE, or "" when not known */
	uint32_t module; /* program or library that the code is in, or LABELS_NO_MODULE */
};

/* No labels yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int labels_new(struct labels **out);

/* The number of the module with this path (any bytes), which distinguishes it from others:
 * LABELS_NO_MODULE for "".  A file that was deleted meanwhile is the same as before.  Returns 0 or
 * -ENOMEM. */
int labels_module(struct labels *labels, const char *path, uint32_t *module);

/* The path of @module, "" of LABELS_NO_MODULE; valid until labels_free(). */
const char *labels_path(const struct labels *labels, uint32_t module);

/*
 * Find the label with this name and location (any bytes) of @module, or add it.
 * On success *@number is its number, from 0 in the order of addition.  Returns 0 or -ENOMEM.
 */
int labels_intern(struct labels *labels, uint32_t module, const char *name, const char *location,
		  uint32_t *number);

/*
 * Write to @functions, which has room for one of each label, the first label that has the name and
 * the module of that label, and to *@namesakes whether any name is one of several modules.
 * Returns 0 or -ENOMEM.
 */
int labels_functions(const struct labels *labels, uint32_t *functions, bool *namesakes);

/* Labels so far. */
size_t labels_nr(const struct labels *labels);

/* Label @number (below labels_nr()); valid until the next labels_intern(), its strings until
 * labels_free(). */
const struct label *labels_get(const struct labels *labels, uint32_t number);

/* Release @labels; NULL is allowed. */
void labels_free(struct labels *labels);

#endif
