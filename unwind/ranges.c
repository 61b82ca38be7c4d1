/* ranges.c - see ranges.h */
#include "unwind/ranges.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct dwunw_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	/* The longer first, so that the shorter counts as inside of it. */
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return (x->item > y->item) - (x->item < y->item);
}

/*
 * The outer range of one is the last before it that reaches past its start.  All ranges that hold
 * an address are then on the chain that begins at the last range that starts at or before the
 * address.
 */
void dwunw_ranges_link(struct dwunw_range *ranges, size_t nr)
{
	if (nr)
		qsort(ranges, nr, sizeof(*ranges), compare);
	for (size_t i = 0; i < nr; i++) {
		size_t outer = i ? i - 1 : DWUNW_NO_RANGE;

		while (outer != DWUNW_NO_RANGE && ranges[outer].end <= ranges[i].start)
			outer = ranges[outer].outer;
		ranges[i].outer = outer;
	}
}

const struct dwunw_range *dwunw_ranges_find(const struct dwunw_range *ranges, size_t nr,
					    uint64_t addr)
{
	size_t low = 0, high = nr, at;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ranges[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	at = low ? low - 1 : DWUNW_NO_RANGE;
	while (at != DWUNW_NO_RANGE && ranges[at].end <= addr)
		at = ranges[at].outer;
	return at == DWUNW_NO_RANGE ? NULL : &ranges[at];
}
