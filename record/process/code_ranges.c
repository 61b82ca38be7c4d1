/* code_ranges.c - see code_ranges.h */
#include "record/process/code_ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void add_all(struct code_ranges *to, const struct maps *maps)
{
	for (size_t i = 0; i < maps->nr; i++)
		if (maps->v[i].perms & MLK_PERM_X)
			to->v[to->nr++] = (struct mlk_mapping){.start = maps->v[i].start,
							       .end = maps->v[i].end,
							       .perms = MLK_PERM_X,
							       .path = ""};
}

static int compare(const void *a, const void *b)
{
	const struct mlk_mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Make one of those that overlap or touch. */
static void join(struct code_ranges *c)
{
	size_t to = 0;

	for (size_t i = 0; i < c->nr; i++)
		if (!to || c->v[i].start > c->v[to - 1].end)
			c->v[to++] = c->v[i];
		else if (c->v[i].end > c->v[to - 1].end)
			c->v[to - 1].end = c->v[i].end;
	c->nr = to;
}

static int collect(struct code_ranges *c, struct process *const *all, size_t nr)
{
	size_t room = 1;

	for (size_t i = 0; i < nr; i++)
		room += all[i]->maps.nr + all[i]->before.nr;
	c->v = calloc(room, sizeof(*c->v));
	if (!c->v)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		add_all(c, &all[i]->maps);
		add_all(c, &all[i]->before);
	}
	qsort(c->v, c->nr, sizeof(*c->v), compare);
	join(c);
	return 0;
}

static bool same(const struct code_ranges *a, const struct code_ranges *b)
{
	if (a->nr != b->nr || !a->v)
		return false;
	for (size_t i = 0; i < a->nr; i++)
		if (a->v[i].start != b->v[i].start || a->v[i].end != b->v[i].end)
			return false;
	return true;
}

void code_ranges_update(struct code_ranges *c, struct trace_out *j, struct process *const *all,
			size_t nr)
{
	/* Without notices of new mappings no word can be known not to be code, so all that could be
	 * addresses are. */
	static const struct mlk_mapping anything = {
		.start = 1 << 16, .end = 1ull << 47, .perms = MLK_PERM_X, .path = ""};
	struct code_ranges now = {0};

	j->code_changed = false;
	if (!j->listening || j->maps_missed) {
		code_ranges_release(c);
		mlk_writer_set_code(j->writer, &anything, 1);
		return;
	}
	trace_out_fail(j, collect(&now, all, nr));
	if (now.v && !same(c, &now)) {
		mlk_writer_set_code(j->writer, now.v, now.nr);
		code_ranges_release(c);
		*c = now;
	} else {
		code_ranges_release(&now);
	}
}

void code_ranges_release(struct code_ranges *c)
{
	free(c->v);
	memset(c, 0, sizeof(*c));
}
