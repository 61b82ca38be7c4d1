/* ranges.h - find the innermost of sorted, perhaps nested address ranges */
#ifndef DWUNW_RANGES_H
#define DWUNW_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct dwunw_range {
	uint64_t start;
	uint64_t end;  /* first address after it */
	uint64_t item; /* whatever the caller keeps for it */
	size_t outer;  /* set by dwunw_ranges_link(): where to go on when the address is not in here
			*/
};

#define DWUNW_NO_RANGE SIZE_MAX

/* Sort the @nr ranges by their start and make them ready for dwunw_ranges_find(). */
void dwunw_ranges_link(struct dwunw_range *ranges, size_t nr);

/* The range with @addr in it that starts last, or NULL. */
const struct dwunw_range *dwunw_ranges_find(const struct dwunw_range *ranges, size_t nr,
					    uint64_t addr);

#endif
