/* filter.c - executable mappings to a few ranges */
#include "format/event/filter.h"

#include <string.h>

/* Take the two ranges with the least gap between them together. */
static void merge_nearest(struct mlk_filter *f)
{
	unsigned int best = 1;

	for (unsigned int i = 2; i < f->nr; i++)
		if (f->code[i].start - f->code[i - 1].end <
		    f->code[best].start - f->code[best - 1].end)
			best = i;
	f->code[best - 1].end = f->code[best].end;
	f->nr--;
	memmove(&f->code[best], &f->code[best + 1], (f->nr - best) * sizeof(f->code[0]));
}

void mlk_filter_set_code(struct mlk_filter *f, const struct mlk_mapping *mappings, size_t nr)
{
	f->nr = 0;
	for (size_t i = 0; i < nr; i++) {
		if (!(mappings[i].perms & MLK_PERM_X))
			continue;
		if (f->nr == MLK_FILTER_SPANS)
			merge_nearest(f);
		f->code[f->nr].start = mappings[i].start;
		f->code[f->nr++].end = mappings[i].end;
	}
}
