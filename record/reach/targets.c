/* targets.c - see targets.h */
#include "record/reach/targets.h"

#include <errno.h>
#include <sys/mman.h>

#define BYTES (TARGETS_WORDS * sizeof(uint64_t))

int targets_begin(struct targets *t, const struct mlk_range *ranges, size_t nr)
{
	/* eight megabytes of address space; only what is used becomes memory */
	void *bits = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (bits == MAP_FAILED)
		return -ENOMEM;
	*t = (struct targets){.bits = bits, .ranges = ranges, .nr = nr};
	for (size_t i = 0; i < nr; i++) {
		uint64_t end = ranges[i].end < TARGETS_TOP ? ranges[i].end : TARGETS_TOP;

		for (uint64_t bit = ranges[i].start >> TARGETS_SHIFT;
		     ranges[i].start < end && bit <= (end - 1) >> TARGETS_SHIFT; bit++)
			t->bits[bit >> 6] |= UINT64_C(1) << (bit & 63);
	}
	return 0;
}

bool targets_find(struct targets *t, uint64_t word)
{
	const struct mlk_range *last = &t->ranges[t->last];
	size_t low = 0, high = t->nr;

	if (word >= last->start && word < last->end)
		return true;
	/* the last range that begins at or below it */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->ranges[middle].start <= word)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || word >= t->ranges[low - 1].end)
		return false;
	t->last = low - 1;
	return true;
}

void targets_release(struct targets *t)
{
	if (t->bits)
		munmap(t->bits, BYTES);
	t->bits = NULL;
}
