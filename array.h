/* array.h - arrays that grow, in format/, unwind/ and record/ */
#ifndef ARRAY_H
#define ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Make room for one more behind the @nr things of @size bytes in the array that *@array, a pointer
 * to any type, points to, and which has room for *@room.  Returns 0 or -ENOMEM; then all is as it
 * was. */
static inline int grow_array(void *array, size_t nr, size_t *room, size_t size)
{
	const size_t more = *room ? 2 * *room : 16;
	void *all;

	if (nr < *room)
		return 0;
	memcpy(&all, array, sizeof(all)); /* by bytes: its type is another one */
	all = reallocarray(all, more, size);
	if (!all)
		return -ENOMEM;
	memcpy(array, &all, sizeof(all));
	*room = more;
	return 0;
}

#endif
