/* chosen_roots.c - see chosen_roots.h */
#include "report/reach/chosen_roots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "unwind/symbol/demangle.h"

struct areas {
	struct reach_area *all;
	size_t nr, room;
};

/* Add what of [@start, @end) was walked through. */
static int add(struct areas *to, struct root_choice *choice, const struct mlk_pass *pass,
	       uint64_t start, uint64_t end)
{
	int err = 0;

	for (size_t i = 0; i < pass->nr_ranges && !err; i++) {
		const struct mlk_range *r = &pass->ranges[i];
		const struct reach_area area = {start > r->start ? start : r->start,
						end < r->end ? end : r->end};

		if (area.start >= area.end)
			continue;
		choice->found = true;
		err = array_append(&to->all, &to->nr, &to->room, &area, sizeof(area));
	}
	return err;
}

/* Is @name what the variable is called, in the file or in C++?  Returns 1, 0 or -ENOMEM. */
static int is_named(const struct variable *v, const char *name)
{
	char *plain;
	int same;

	if (v->name_len == strlen(name) && !memcmp(v->name, name, v->name_len))
		return 1;
	if (v->name_len < 2 || memcmp(v->name, "_Z", 2) != 0)
		return 0;
	plain = dwunw_demangle(v->name, v->name_len);
	same = plain ? !strcmp(plain, name) : -ENOMEM;
	free(plain);
	return same;
}

static int add_named(struct areas *to, struct root_choice *choice, const struct variables *in,
		     const struct mlk_pass *pass)
{
	int err = 0;

	for (size_t i = 0; i < in->nr && !err; i++) {
		err = is_named(&in->all[i], choice->text);
		if (err > 0)
			err = add(to, choice, pass, in->all[i].start, in->all[i].end);
	}
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct reach_area *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void join_overlapping(struct areas *of)
{
	size_t kept = 0;

	if (of->nr)
		qsort(of->all, of->nr, sizeof(*of->all), by_start);
	for (size_t i = 0; i < of->nr; i++) {
		struct reach_area *last = kept ? &of->all[kept - 1] : NULL;

		if (!last || of->all[i].start > last->end)
			of->all[kept++] = of->all[i];
		else if (of->all[i].end > last->end)
			last->end = of->all[i].end;
	}
	of->nr = kept;
}

int chosen_roots_find(struct root_choice *choices, size_t nr, const struct root_modules *modules,
		      const struct mlk_pass *pass, struct reach_area **areas, size_t *nr_areas)
{
	struct variables variables = {0};
	struct areas found = {0};
	int err = modules ? variables_find(&variables, modules, pass) : 0;

	for (size_t i = 0; i < nr && !err; i++)
		err = choices[i].named
			      ? add_named(&found, &choices[i], &variables, pass)
			      : add(&found, &choices[i], pass, choices[i].start, choices[i].end);
	variables_release(&variables);
	join_overlapping(&found);
	*areas = found.all;
	*nr_areas = found.nr;
	return err;
}
