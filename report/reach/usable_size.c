/* usable_size.c - see usable_size.h */
#include "report/reach/usable_size.h"

#include <string.h>

#define LEAST_CHUNK 24		  /* of glibc */
#define QUANTUM	    16		  /* of both */
#define TINY	    8		  /* of jemalloc: the only size that is no multiple of 16 */
#define LAST_EVEN   (8 * QUANTUM) /* of jemalloc: up to there sizes are a quantum apart */

/* How far jemalloc's size that is @size, or the next after it, is from the one before: there are
 * four between each power of two and the next. */
static uint64_t jemalloc_step(uint64_t size)
{
	return size <= LAST_EVEN ? QUANTUM : UINT64_C(1) << (61 - __builtin_clzll(size - 1));
}

static uint64_t of_jemalloc(uint64_t size)
{
	const uint64_t step = jemalloc_step(size);

	if (size <= TINY)
		return TINY;
	return size > UINT64_MAX - step ? size : (size + step - 1) & ~(step - 1);
}

uint64_t usable_size(const char *allocator, uint64_t size)
{
	if (!strncmp(allocator, "jemalloc", 8))
		return of_jemalloc(size);
	if (size > UINT64_MAX - QUANTUM)
		return size;
	return size < LEAST_CHUNK ? LEAST_CHUNK : ((size + 7) | 15) - 7;
}

uint64_t usable_size_least(uint64_t size)
{
	if (size % QUANTUM)
		return size > LEAST_CHUNK ? size - QUANTUM + 1 : 0;
	if (size <= QUANTUM)
		return size ? TINY + 1 : 0;
	return size - jemalloc_step(size) + 1;
}
