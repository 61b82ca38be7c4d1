/* snapshots.c - see snapshots.h */
#include "report/reach/snapshots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"

static void forget_pass(struct mlk_pass *pass)
{
	for (size_t i = 0; i < pass->nr_ranges; i++)
		free((char *)(uintptr_t)pass->ranges[i].path);
	free((void *)(uintptr_t)pass->ranges);
	free((void *)(uintptr_t)pass->threads);
	free((void *)(uintptr_t)pass->roots);
}

static void forget_passes(struct snapshot *s)
{
	for (size_t i = 0; i < s->nr; i++)
		forget_pass(&s->passes[i]);
	s->nr = 0;
}

/* A copy of @nr things of @size bytes; at least one byte. */
static void *copy_of(const void *all, size_t nr, size_t size)
{
	void *copy = calloc(nr + 1, size);

	if (copy && nr)
		memcpy(copy, all, nr * size);
	return copy;
}

static int copy_pass(struct mlk_pass *to, const struct mlk_pass *from)
{
	struct mlk_range *ranges = copy_of(from->ranges, from->nr_ranges, sizeof(*ranges));
	bool failed = !ranges;

	*to = *from;
	for (size_t i = 0; i < from->nr_ranges && ranges; i++) {
		ranges[i].path = strdup(ranges[i].path);
		failed |= !ranges[i].path;
	}
	to->ranges = ranges;
	if (!ranges)
		to->nr_ranges = 0;
	to->threads = copy_of(from->threads, from->nr_threads, sizeof(*to->threads));
	to->roots = copy_of(from->roots, from->nr_roots, sizeof(*to->roots));
	if (!failed && to->threads && to->roots)
		return 0;
	forget_pass(to);
	return -ENOMEM;
}

static struct snapshot *snapshot_of(struct snapshots *s, uint32_t tgid)
{
	const struct snapshot none = {.tgid = tgid};

	for (size_t i = 0; i < s->nr; i++)
		if (s->all[i].tgid == tgid)
			return &s->all[i];
	return array_append(&s->all, &s->nr, &s->room, &none, sizeof(none)) ? NULL
									    : &s->all[s->nr - 1];
}

static int add_pass(struct snapshots *s, const struct mlk_pass *pass)
{
	struct snapshot *of = snapshot_of(s, pass->tgid);
	struct mlk_pass copy;
	int err;

	if (!of)
		return -ENOMEM;
	if (of->nr && of->passes[0].snapshot != pass->snapshot)
		forget_passes(of);
	/* passes ascend; what is made by hand may not */
	if (of->nr && (pass->pass <= of->passes[of->nr - 1].pass || pass->begin_ns < of->end_ns))
		return 0;
	err = copy_pass(&copy, pass);
	if (err)
		return err;
	err = array_append(&of->passes, &of->nr, &of->room, &copy, sizeof(copy));
	if (err) {
		forget_pass(&copy);
		return err;
	}
	of->begin_ns = of->passes[0].begin_ns;
	of->end_ns = pass->end_ns;
	return 0;
}

int snapshots_find(struct snapshots *s, struct mlk_reader *trace, uint64_t stop_ns)
{
	struct mlk_record record;
	int more, err = 0;

	*s = (struct snapshots){0};
	mlk_reader_rewind(trace, MLK_RECORD_PASS);
	while (!err && (more = mlk_reader_next(trace, &record)) > 0)
		if (record.pass.end_ns <= stop_ns)
			err = add_pass(s, &record.pass);
	return err ? err : more;
}

void snapshots_release(struct snapshots *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		forget_passes(&s->all[i]);
		free(s->all[i].passes);
	}
	free(s->all);
	*s = (struct snapshots){0};
}
