/* ranges.c - see ranges.h */
#include "unwind/elf/ranges.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "array.h"

void dwunw_ranges_release(struct dwunw_ranges *ranges)
{
	free(ranges->range);
	*ranges = (struct dwunw_ranges){0};
}

int dwunw_ranges_add(struct dwunw_ranges *ranges, uint64_t start, uint64_t end, uint64_t item)
{
	if (start >= end)
		return 0;
	if (grow_array(&ranges->range, ranges->nr, &ranges->room, sizeof(*ranges->range)))
		return -ENOMEM;
	ranges->range[ranges->nr++] = (struct dwunw_range){start, end, item};
	return 0;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct dwunw_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	/* The longer first, so that the shorter counts as inside of it. */
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return (x->item > y->item) - (x->item < y->item);
}

/* Those of sorted symbols come in their order. */
static bool are_sorted(const struct dwunw_ranges *ranges)
{
	size_t i = 1;

	while (i < ranges->nr && compare_ranges(&ranges->range[i - 1], &ranges->range[i]) <= 0)
		i++;
	return i >= ranges->nr;
}

/* Add to @flat what the @depth open ranges cover from *at up to @limit, where *at is afterwards
 * unless they end before.  Returns how many stay open. */
static size_t cover(struct dwunw_ranges *flat, const struct dwunw_range *open, size_t depth,
		    uint64_t *at, uint64_t limit)
{
	for (; depth; depth--) {
		const struct dwunw_range *top = &open[depth - 1];
		uint64_t end = top->end < limit ? top->end : limit;

		if (end > *at) {
			flat->range[flat->nr++] = (struct dwunw_range){*at, end, top->item};
			*at = end;
		}
		if (top->end > limit)
			break;
	}
	return depth;
}

/*
 * A sweep from low to high with a stack of the ranges that are open.  Each range adds at most a
 * piece when the next one starts and one when it ends itself.  The stack takes the place of the
 * ranges that were passed.
 */
int dwunw_ranges_flatten(struct dwunw_ranges *ranges)
{
	struct dwunw_ranges flat = {.room = 2 * ranges->nr};
	struct dwunw_range *open = ranges->range;
	size_t depth = 0;
	uint64_t at = 0;

	if (!ranges->nr)
		return 0;
	flat.range = calloc(flat.room, sizeof(*flat.range));
	if (!flat.range)
		return -ENOMEM;
	if (!are_sorted(ranges))
		qsort(ranges->range, ranges->nr, sizeof(*ranges->range), compare_ranges);
	for (size_t i = 0; i < ranges->nr; i++) {
		const struct dwunw_range next = ranges->range[i];

		depth = cover(&flat, open, depth, &at, next.start);
		open[depth++] = next;
		at = next.start;
	}
	cover(&flat, open, depth, &at, UINT64_MAX);
	free(ranges->range);
	*ranges = flat;
	return 0;
}

const struct dwunw_range *dwunw_ranges_find(const struct dwunw_ranges *ranges, uint64_t addr)
{
	size_t low = 0, high = ranges->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ranges->range[mid].end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < ranges->nr && ranges->range[low].start <= addr ? &ranges->range[low] : NULL;
}
