/* place_labels.h - places as labels, of which trees are made: by function and module */
#ifndef REPORT_PLACE_LABELS_H
#define REPORT_PLACE_LABELS_H

#include "report/name/labels.h"
#include "report/view/places.h"

/* Add a label for each of @places to @labels.  *@out, which the caller frees, has their numbers,
 * NULL on failure.  Returns 0 or -ENOMEM. */
int place_labels_new(uint32_t **out, struct labels *labels, const struct places *places);

#define PLACE_LABELS_SIDES 2

/*
 * The same for the places of both sides of a difference, to *@out[].  There modules are
 * distinguished by the names of their files alone, and only where functions of one side have the
 * same name: what is of one module each is the same, for programs and libraries get new names by
 * their versions.  If @inlined, labels of inlined functions are `NAME (inlined)`.
 */
int place_labels_both(uint32_t *out[PLACE_LABELS_SIDES], struct labels *labels,
		      const struct places *const sides[PLACE_LABELS_SIDES], bool inlined);

/* Write the labels of stack @i of @places, which have these @numbers, to @path, outermost first.
 * Returns how many. */
size_t place_labels_path(const struct places *places, size_t i, const uint32_t *numbers,
			 uint32_t path[VIEW_MAX_PATH]);

#endif
