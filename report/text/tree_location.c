/* tree_location.c - see tree_location.h */
#include "report/text/tree_location.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/sizes.h"

#define MAX_PLACES 3 /* of a function that are shown */

/* Is place @a to be shown before @b?  The heaviest is first. */
static bool is_before(const struct labels *labels, const struct tree_place *a,
		      const struct tree_place *b)
{
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes;
	return strcmp(labels->all[a->label].location, labels->all[b->label].location) < 0;
}

/* The first MAX_PLACES of @node to @best, in their order.  Returns how many there are in all. */
static size_t best_places(const struct tree *tree, const struct labels *labels,
			  const struct tree_node *node, const struct tree_place *best[MAX_PLACES])
{
	size_t nr = 0;

	for (uint32_t at = node->places; at != TREE_NONE; nr++) {
		const struct tree_place *place = &tree->places.all[at];
		size_t to = nr < MAX_PLACES ? nr : MAX_PLACES;

		for (; to && is_before(labels, place, best[to - 1]); to--)
			if (to < MAX_PLACES)
				best[to] = best[to - 1];
		if (to < MAX_PLACES)
			best[to] = place;
		at = place->next;
	}
	return nr;
}

/* Print where the calls are: FILE:LINE, or of several "FILE:LINE (BYTES), :LINE (BYTES), 2 more".
 */
static void print_places(FILE *out, const struct tree *tree, const struct labels *labels,
			 const struct tree_node *node)
{
	const struct tree_place *best[MAX_PLACES];
	size_t nr = best_places(tree, labels, node, best), file_len = 0;
	const char *file = "";
	char bytes[SIZE_TEXT_MAX];

	for (size_t i = 0; i < nr && i < MAX_PLACES; i++) {
		const char *location = labels->all[best[i]->label].location;
		const char *colon = strrchr(location, ':');
		bool same = colon && file_len == (size_t)(colon - location) &&
			    !memcmp(location, file, file_len);

		fprintf(out, "%s%s (%s)", i ? ", " : "",
			same	    ? colon
			: *location ? location
				    : "[no line]",
			size_cell(bytes, best[i]->bytes));
		file = location;
		file_len = colon ? (size_t)(colon - location) : 0;
	}
	if (nr > MAX_PLACES)
		fprintf(out, ", %zu more", nr - MAX_PLACES);
}

const char *tree_location(const struct tree *tree, const struct labels *labels,
			  const struct tree_node *node, char **made)
{
	const char *location = labels->all[node->label].location;
	size_t len;
	FILE *out;

	*made = NULL;
	if (node->places != TREE_NONE)
		location = labels->all[tree->places.all[node->places].label].location;
	if (node->places == TREE_NONE || tree->places.all[node->places].next == TREE_NONE)
		return location;
	out = open_memstream(made, &len);
	if (!out)
		return NULL;
	print_places(out, tree, labels, node);
	if (!fclose(out))
		return *made;
	free(*made);
	*made = NULL;
	return NULL;
}
