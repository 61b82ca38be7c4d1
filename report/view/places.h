/* places.h - the frames of a view with all that is known of each, for formats that programs read
 *
 * All text in here has gone through text_escape().
 */
#ifndef REPORT_PLACES_H
#define REPORT_PLACES_H

#include "report/view/view.h"

struct places; /* opaque */

/* One place in the code; each distinct one is there once. */
struct place {
	char *function; /* as a label: a name, MODULE+0xADDR, or a remark in brackets */
	char *file;	/* source file as the compiler was given it; "" when not known */
	char *module;	/* path of the program or library; "" when there is none */
	uint32_t line;	/* from 1; 0 when not known */
	bool inlined;	/* the compiler put this function into its caller */
	char *told; /* what is shown of the module where functions of all stacks are shown together:
		       others have this name, see disambiguate.h; NULL: nothing */
};

/* Take in the stacks of @view, which is not used later.  *@out is NULL on failure.  Returns 0 or
 * -ENOMEM. */
int places_new(struct places **out, const struct view *view);

/* Places, and place @number (below that); valid until places_free(). */
size_t places_nr(const struct places *places);
const struct place *places_get(const struct places *places, uint32_t number);

/* The places of stack @i of the view, innermost first, at least one; an incomplete stack ends in a
 * remark.  *@nr is how many there are.  Valid until places_free(). */
const uint32_t *places_path(const struct places *places, size_t i, size_t *nr);

/* The function as it is shown where those of all stacks are: behind it, in brackets, is what is
 * shown of its module.  Returns a string that the caller frees, or NULL when there is no memory. */
char *place_function(const struct place *place);

/* Release @places; NULL is allowed. */
void places_free(struct places *places);

#endif
