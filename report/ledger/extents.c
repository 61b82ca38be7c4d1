/* extents.c - see extents.h */
#include "report/ledger/extents.h"

#include <stdlib.h>

static int by_start(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	if (x->start != y->start)
		return x->start > y->start ? 1 : -1;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* They overlap where frees were lost: the younger one is there. */
void extents_set_apart(struct extents *e)
{
	size_t kept = 0;

	if (e->nr)
		qsort(e->all, e->nr, sizeof(*e->all), by_start);
	for (size_t i = 0; i < e->nr; i++) {
		struct extent *last = kept ? &e->all[kept - 1] : NULL;

		if (last && e->all[i].start < last->end) {
			if (e->all[i].time_ns < last->time_ns)
				continue;
			last->end = e->all[i].start;
			kept -= last->end <= last->start;
		}
		e->all[kept++] = e->all[i];
	}
	e->nr = kept;
}

const struct extent *extents_part(struct extents *e, uint64_t at, uint64_t end, uint64_t *until)
{
	while (e->next < e->nr && e->all[e->next].end <= at)
		e->next++;
	*until = end;
	if (e->next == e->nr || e->all[e->next].start >= end)
		return NULL;
	if (e->all[e->next].start > at) {
		*until = e->all[e->next].start;
		return NULL;
	}
	if (e->all[e->next].end < end)
		*until = e->all[e->next].end;
	return &e->all[e->next];
}

uint64_t extents_passed(const struct extents *e)
{
	return e->next ? e->all[e->next - 1].end : 0;
}

/* The place of the first one that ends behind @address. */
static size_t first_behind(const struct extents *e, uint64_t address)
{
	size_t low = 0, high = e->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (e->all[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct extent *extents_find(const struct extents *e, uint64_t address)
{
	size_t at = first_behind(e, address);

	return at < e->nr && e->all[at].start <= address ? &e->all[at] : NULL;
}

bool extents_any(const struct extents *e, uint64_t start, uint64_t end)
{
	size_t at = first_behind(e, start);

	return at < e->nr && e->all[at].start < end;
}
