/* place_labels.h - places as labels, of which trees are made: by function and module */
#ifndef REPORT_PLACE_LABELS_H
#define REPORT_PLACE_LABELS_H

#include "report/labels.h"
#include "report/places.h"

/* All zero: names as the places have them, and modules by their paths. */
struct place_labels_opts {
	bool inlined; /* `NAME (inlined)` of functions that were */
	bool by_base; /* modules are told apart by the names of their files alone */
};

/* Add a label for each place to @labels.  *@out, which the caller frees, has their numbers, NULL on
 * failure.  Returns 0 or -ENOMEM. */
int place_labels_new(uint32_t **out, struct labels *labels, const struct places *places,
		     const struct place_labels_opts *opts);

#endif
