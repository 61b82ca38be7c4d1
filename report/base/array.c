/* array.c - see array.h */
#include "report/base/array.h"

#include <stdlib.h>

#define FIRST_ROOM 16

void *array_enlarge(void *array, size_t *room, size_t need, size_t size)
{
	size_t wanted = *room ? *room : FIRST_ROOM;
	void *grown;

	while (wanted < need) {
		if (wanted > SIZE_MAX / 2)
			return NULL;
		wanted *= 2;
	}
	grown = reallocarray(array, wanted, size);
	if (grown)
		*room = wanted;
	return grown;
}

int array_cover(void *array, size_t *room, size_t need, size_t size)
{
	size_t before = *room;
	void *all;

	if (need <= before)
		return 0;
	memcpy(&all, array, sizeof(all));
	/* a new one may be large and hardly used: pages of zeroes are not touched */
	all = before ? array_enlarge(all, room, need, size) : calloc(need, size);
	if (!all)
		return -ENOMEM;
	if (before)
		memset((char *)all + before * size, 0, (*room - before) * size);
	else
		*room = need;
	memcpy(array, &all, sizeof(all));
	return 0;
}

size_t array_first_from(const void *array, size_t nr, size_t size, size_t offset, uint32_t number)
{
	size_t low = 0, high = nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint32_t found;

		memcpy(&found, (const char *)array + middle * size + offset, sizeof(found));
		if (found < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
