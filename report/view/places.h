/* places.h - the frames of a view with all that is known of each, for formats that programs read
 *
 * All text in here has gone through text_escape().
 */
#ifndef REPORT_PLACES_H
#define REPORT_PLACES_H

#include "report/base/hash_index.h"
#include "report/name/labels.h"
#include "report/view/view.h"

/* One place in the code; each distinct one is there once. */
struct place {
	char *function;	  /* as a label: a name, MODULE+0xADDR, or a remark in brackets */
	char *file;	  /* source file as the compiler was given it; "" when not known */
	char *module;	  /* path of the program or library; "" when there is none */
	uint32_t line;	  /* from 1; 0 when not known */
	bool inlined;	  /* the compiler put this function into its caller */
	const char *told; /* what is to be told of the module where functions of all stacks are
		     shown together: others have this name, see disambiguate(); NULL: nothing */
};

/* Where in the steps those of a frame are; nr 0: it was not met yet. */
struct place_steps {
	size_t first, nr;
};

/* Those of a view, by number; valid until places_free(). */
struct places {
	const struct view *view; /* only in places_new(), as the next */
	struct place_steps *met; /* of each frame of view->names */
	INTERN_OF(struct place);
	uint32_t *steps; /* the paths of all stacks, one after the other */
	size_t nr_steps, steps_room;
	size_t *first; /* of each stack: where its path begins; and where the last one ends */
	struct labels *labels; /* of the places: function and module, without locations */
	uint32_t *numbers;     /* of each place: its label */
};

/* Take in the stacks of @view, which is not used later.  *@out is NULL on failure.  Returns 0 or
 * -ENOMEM. */
int places_new(struct places **out, const struct view *view);

/* The places of stack @i of the view, innermost first, at least one; an incomplete stack ends in a
 * remark.  *@nr is how many there are.  Valid until places_free(). */
const uint32_t *places_path(const struct places *places, size_t i, size_t *nr);

/* The function as it is shown where those of all stacks are: behind it, in brackets, is what is
 * shown of its module.  Returns a string that the caller frees, or NULL when there is no memory. */
char *place_function(const struct place *place);

/* The same, but for what is no machine code of a file, with its frame_kind_mark() in place of the
 * module. */
char *place_function_marked(const struct place *place);

/* Release @places; NULL is allowed. */
void places_free(struct places *places);

#define PLACE_LABELS_SIDES 2 /* of a difference: before and after */

/*
 * Add a label for each place of both sides of a difference, to @labels, with their numbers in
 * *@out[], which the caller frees.  There modules are told apart by the names of their files alone,
 * and only where functions of one side have the same name: what is of one module each is the same,
 * for programs and libraries get new names by their versions. If @inlined, labels of inlined
 * functions are `NAME (inlined)`.
 */
int place_labels_both(uint32_t *out[PLACE_LABELS_SIDES], struct labels *labels,
		      const struct places *const sides[PLACE_LABELS_SIDES], bool inlined);

/* Write the labels of stack @i of @places, which have these @numbers, to @path, outermost first.
 * Returns how many. */
size_t place_labels_path(const struct places *places, size_t i, const uint32_t *numbers,
			 uint32_t path[VIEW_MAX_PATH]);

#endif
