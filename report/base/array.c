/* array.c - see array.h */
#include "report/base/array.h"

#include <stdint.h>
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
