/* array.h - make room in an array that grows */
#ifndef REPORT_ARRAY_H
#define REPORT_ARRAY_H

#include <stddef.h>

/* array_grow() where there is not room enough. */
void *array_enlarge(void *array, size_t *room, size_t need, size_t size);

/*
 * Give @array, which has room for *@room things of @size bytes, room for @need of them.
 *
 * Returns the array, which may have moved, with *@room set to its new room.  On failure returns
 * NULL; @array and *@room are then as before, and @array is still the caller's.
 */
static inline void *array_grow(void *array, size_t *room, size_t need, size_t size)
{
	return need <= *room ? array : array_enlarge(array, room, need, size);
}

#endif
