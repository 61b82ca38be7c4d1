/* ranges.h - find the innermost of address ranges that may be nested */
#ifndef DWUNW_RANGES_H
#define DWUNW_RANGES_H

#include <stddef.h>
#include <stdint.h>

/* Addresses that belong together. */
struct dwunw_range {
	uint64_t start;
	uint64_t end;  /* first address after it */
	uint64_t item; /* whatever the caller keeps for it */
};

/* Zeroes make an empty one. */
struct dwunw_ranges {
	struct dwunw_range *range;
	size_t nr, room;
};

/* Free the ranges; then there are none. */
void dwunw_ranges_release(struct dwunw_ranges *ranges);

/* Add the range from @start up to @end; an empty one is left out.  Returns 0 or -ENOMEM. */
int dwunw_ranges_add(struct dwunw_ranges *ranges, uint64_t start, uint64_t end, uint64_t item);

/* Cut @ranges, when all were added, into sorted pieces that do not overlap: at each address stays
 * the item of the range that starts last; of those, of the shortest; of those, the highest item.
 * Returns 0, or -ENOMEM with @ranges as it was. */
int dwunw_ranges_flatten(struct dwunw_ranges *ranges);

/* The piece of the flattened @ranges with @addr in it, or NULL. */
const struct dwunw_range *dwunw_ranges_find(const struct dwunw_ranges *ranges, uint64_t addr);

#endif
