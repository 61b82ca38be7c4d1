/* array.h - arrays that grow */
#ifndef DWUNW_ARRAY_H
#define DWUNW_ARRAY_H

#include <stddef.h>
#include <stdlib.h>

/* Room for one more behind the @nr things of @size bytes in @all, which has room for *@room.
 * Returns where they are now, or NULL when out of memory; then @all is as it was. */
static inline void *dwunw_array_grow(void *all, size_t nr, size_t *room, size_t size)
{
	const size_t more = *room ? 2 * *room : 16;
	void *grown = nr < *room ? all : reallocarray(all, more, size);

	if (grown && nr == *room)
		*room = more;
	return grown;
}

#endif
