/* labels.h - what a line of the report says of a frame, each distinct text stored once
 *
 * All text in here has gone through text_escape(): it may be printed as it is.
 */
#ifndef REPORT_LABELS_H
#define REPORT_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/base/hash_index.h"
#include "report/base/strings.h"

#define LABELS_NO_MODULE 0 /* of labels that are not of code */

/* What is said of a frame; its module is a number of struct labels' modules. */
struct label {
	char *name;	 /* a function, MODULE+0xADDR, or a remark in brackets */
	char *location;	 /* FILE:LINE, or "" when not known */
	uint32_t module; /* program or library that the code is in, or LABELS_NO_MODULE */
};

/* All labels, by number in the order of addition.  The array moves with labels_intern(), but the
 * strings live until labels_free(). */
struct labels {
	INTERN_OF(struct label);
	struct strings *modules; /* paths */
};

/* No labels yet.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int labels_new(struct labels **out);

/* The number of the module with this path (any bytes), which distinguishes it from others:
 * LABELS_NO_MODULE for "".  A file that was deleted meanwhile is the same as before.  Returns 0 or
 * -ENOMEM. */
int labels_module(struct labels *labels, const char *path, uint32_t *module);

/*
 * Find the label with this name and location (any bytes) of @module, or add it.
 * On success *@number is its number, from 0 in the order of addition.  Returns 0 or -ENOMEM.
 */
int labels_intern(struct labels *labels, uint32_t module, const char *name, const char *location,
		  uint32_t *number);

/* Labels without their locations; all zero is of none. */
struct label_functions {
	uint32_t *all; /* of each label, the first one that has its name and module */
	size_t nr, room;
	bool namesakes;			    /* some name is one of several modules */
	struct hash_index names, functions; /* first labels: of each name; of those and modules */
};

/* Add those that @labels has beyond the ones there are.  Returns 0 or -ENOMEM. */
int label_functions_update(struct label_functions *functions, const struct labels *labels);

/* Release what @functions holds, and leave it empty. */
void label_functions_release(struct label_functions *functions);

/* Release @labels; NULL is allowed. */
void labels_free(struct labels *labels);

/* One of several functions that are shown side by side; its strings are borrowed. */
struct namesake {
	const char *name;
	const char *module; /* path, distinct from others; "" for what is not of code */
	const char *told;   /* of the module: its file name, its path, or NULL: nothing need be */
	uint32_t number;    /* the caller's */
};

/*
 * * Set what is shown of each of @all, and sort them; no two have the same name and module.  Of
 * those whose name others have, too, it is the name of the module's file, or where that is the
 * same, too, the path.
 */
void disambiguate(struct namesake *all, size_t nr);

#endif
