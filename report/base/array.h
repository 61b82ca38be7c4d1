/* array.h - make room in an array that grows */
#ifndef REPORT_ARRAY_H
#define REPORT_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* The same of the array to which @array, a pointer to a pointer, points; what is new in its room is
 * zero.  Returns 0 or -ENOMEM. */
int array_cover(void *array, size_t *room, size_t need, size_t size);

/* The place of the first of the @nr things of @size bytes in @array whose uint32_t at @offset is
 * not below @number, or @nr; they are sorted by it. */
size_t array_first_from(const void *array, size_t nr, size_t size, size_t offset, uint32_t number);

/* Append a copy of the @size bytes at @thing to the array to which @array, a pointer to a pointer,
 * points: there are *@nr in it, and room for *@room.  Returns 0 or -ENOMEM. */
static inline int array_append(void *array, size_t *nr, size_t *room, const void *thing,
			       size_t size)
{
	void *all;

	memcpy(&all, array, sizeof(all));
	all = array_grow(all, room, *nr + 1, size);
	if (!all)
		return -ENOMEM;
	memcpy(array, &all, sizeof(all));
	memcpy((char *)all + (*nr)++ * size, thing, size);
	return 0;
}

#endif
