/* array.h - arrays that grow */
#ifndef RECORD_ARRAY_H
#define RECORD_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Make room for one entry more than @nr, each of @size bytes, in the array of @room entries to
 * which the pointer at @array leads.  Returns 0, or -ENOMEM, and then all is as before. */
static inline int array_grow(void *array, size_t *room, size_t nr, size_t size)
{
	size_t larger = *room ? *room * 2 : 16;
	void *items;

	if (nr < *room)
		return 0;
	memcpy(&items, array, sizeof(items));
	items = realloc(items, larger * size);
	if (!items)
		return -ENOMEM;
	memcpy(array, &items, sizeof(items));
	*room = larger;
	return 0;
}

#endif
