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

/* The snapshot that was read is that of its process, unless a complete one is there already. */
static int keep_next(struct snapshots *s)
{
	struct snapshot *of;

	if (!s->next.nr)
		return 0;
	of = snapshot_of(s, s->next.tgid);
	if (!of)
		return -ENOMEM;
	if (of->complete && !s->next.complete) {
		forget_passes(&s->next);
		return 0;
	}
	forget_passes(of);
	free(of->passes);
	*of = s->next;
	s->next = (struct snapshot){0};
	return 0;
}

static int add_pass(struct snapshots *s, const struct mlk_pass *pass)
{
	struct snapshot *next = &s->next;
	struct mlk_pass copy;
	int err = 0;

	if (next->nr && (next->tgid != pass->tgid || next->passes[0].snapshot != pass->snapshot))
		err = keep_next(s);
	if (err)
		return err;
	/* passes ascend; what is made by hand may not */
	if (next->nr &&
	    (pass->pass <= next->passes[next->nr - 1].pass || pass->begin_ns < next->end_ns))
		return 0;
	err = copy_pass(&copy, pass);
	if (err)
		return err;
	err = array_append(&next->passes, &next->nr, &next->room, &copy, sizeof(copy));
	if (err) {
		forget_pass(&copy);
		return err;
	}
	next->tgid = pass->tgid;
	next->begin_ns = next->passes[0].begin_ns;
	next->end_ns = pass->end_ns;
	next->complete |= (pass->flags & MLK_PASS_LAST) != 0;
	return 0;
}

static int by_tgid(const void *a, const void *b)
{
	const struct snapshot *x = a, *y = b;

	return (x->tgid > y->tgid) - (x->tgid < y->tgid);
}

int snapshots_find(struct snapshots *s, struct mlk_reader *trace, uint64_t stop_ns)
{
	struct mlk_record record;
	int more = 0, err = 0;

	*s = (struct snapshots){0};
	mlk_reader_rewind(trace, MLK_RECORD_PASS);
	while (!err && (more = mlk_reader_next(trace, &record)) > 0)
		if (record.pass.end_ns <= stop_ns)
			err = add_pass(s, &record.pass);
		else if (!s->later_ns || record.pass.end_ns < s->later_ns)
			s->later_ns = record.pass.end_ns;
	if (!err && !more)
		err = keep_next(s);
	if (s->nr)
		qsort(s->all, s->nr, sizeof(*s->all), by_tgid);
	return err ? err : more;
}

void snapshots_release(struct snapshots *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		forget_passes(&s->all[i]);
		free(s->all[i].passes);
	}
	free(s->all);
	forget_passes(&s->next);
	free(s->next.passes);
	*s = (struct snapshots){0};
}
