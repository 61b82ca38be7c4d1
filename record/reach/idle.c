/* idle.c - see idle.h */
#include "record/reach/idle.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"

int idle_add(struct idle *idle, uint64_t start, uint64_t end)
{
	/* words are at multiples of 8, whatever the process says */
	start = (start + 7) & ~UINT64_C(7);
	end &= ~UINT64_C(7);
	if (start >= end)
		return 0;
	if (grow_array(&idle->v, idle->nr, &idle->room, sizeof(*idle->v)))
		return -ENOMEM;
	idle->v[idle->nr++] = (struct idle_area){start, end};
	return 0;
}

const struct mlk_range *idle_range_of(const struct idle_memory *memory, uint64_t address)
{
	size_t low = 0, high = memory->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (memory->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < memory->nr && memory->ranges[low].start <= address ? &memory->ranges[low]
									: NULL;
}

bool idle_is_anonymous(const struct mlk_range *range)
{
	return !range->path || !range->path[0];
}

static int by_start(const void *a, const void *b)
{
	const struct idle_area *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

int idle_find(struct idle *idle, const struct idle_memory *memory)
{
	struct idle_threads threads = {0};
	int err;

	*idle = (struct idle){0};
	err = idle_stacks(idle, memory, &threads);
	if (!err)
		err = idle_jemalloc(idle, memory, &threads);
	free(threads.descriptors);
	if (idle->nr)
		qsort(idle->v, idle->nr, sizeof(*idle->v), by_start);
	return err;
}

void idle_release(struct idle *idle)
{
	free(idle->v);
	*idle = (struct idle){0};
}
