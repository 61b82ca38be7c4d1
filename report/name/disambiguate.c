/* disambiguate.c - see disambiguate.h */
#include "report/name/disambiguate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/text.h"

static int compare(const void *a, const void *b)
{
	const struct namesake *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (!order)
		order = strcmp(text_file_name(x->module), text_file_name(y->module));
	return order ? order : strcmp(x->module, y->module);
}

static bool same_base(const struct namesake *a, const struct namesake *b)
{
	return !strcmp(text_file_name(a->module), text_file_name(b->module));
}

/* The same for @nr of one name, whose modules differ. */
static void tell_run(struct namesake *all, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		bool by_path = (i && same_base(&all[i - 1], &all[i])) ||
			       (i + 1 < nr && same_base(&all[i], &all[i + 1]));

		all[i].told = nr < 2 || !all[i].module[0] ? NULL
			      : by_path			  ? all[i].module
							  : text_file_name(all[i].module);
	}
}

void disambiguate(struct namesake *all, size_t nr)
{
	size_t first = 0;

	if (nr)
		qsort(all, nr, sizeof(*all), compare);
	for (size_t i = 1; i <= nr; i++) {
		if (i < nr && !strcmp(all[i].name, all[first].name))
			continue;
		tell_run(all + first, i - first);
		first = i;
	}
}
