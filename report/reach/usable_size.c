/* usable_size.c - see usable_size.h */
#include "report/reach/usable_size.h"

#include <string.h>

#define LEAST_CHUNK 24		  /* of glibc */
#define QUANTUM	    16		  /* of all */
#define TINY	    8		  /* of the others: the only size that is no multiple of 16 */
#define LAST_EVEN   (8 * QUANTUM) /* of the others: up to there sizes are a quantum apart */

/* Of tcmalloc, as it is unless TCMALLOC_TRANSFER_NUM_OBJ is set. */
#define TCMALLOC_PAGE  8192
#define TCMALLOC_LARGE (256u << 10) /* the largest size that has slabs */

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

/* Of tcmalloc: so far apart sizes are that it looks at, @size or the next after it. */
static uint64_t tcmalloc_step(uint64_t size)
{
	uint64_t step;

	if (size <= TINY)
		return TINY;
	if (size < LAST_EVEN)
		return QUANTUM;
	step = UINT64_C(1) << (60 - __builtin_clzll(size));
	return step < TCMALLOC_PAGE ? step : TCMALLOC_PAGE;
}

/* Of tcmalloc: how many bytes a slab of blocks of @size bytes has: at most an eighth is left over,
 * and a quarter of the blocks that are moved at once fit. */
static uint64_t tcmalloc_slab(uint64_t size)
{
	const uint64_t fit = (64 << 10) / size, moved = fit < 2 ? 2 : fit < 32 ? fit : 32;
	uint64_t slab = TCMALLOC_PAGE;

	while (slab % size > slab / 8 || slab / size < moved / 4)
		slab += TCMALLOC_PAGE;
	return slab;
}

static uint64_t of_tcmalloc(uint64_t size)
{
	uint64_t step = tcmalloc_step(size), next;

	if (size > UINT64_MAX - step)
		return size;
	size = size ? (size + step - 1) & ~(step - 1) : TINY;
	/* of sizes of which as many fit into a slab only the largest is used */
	for (; size < TCMALLOC_LARGE; size = next) {
		const uint64_t slab = tcmalloc_slab(size);

		next = size + tcmalloc_step(size == TINY ? size : size + 1);
		if (tcmalloc_slab(next) != slab || slab / next != slab / size)
			break;
	}
	return size;
}

uint64_t usable_size(const char *allocator, uint64_t size)
{
	if (!strncmp(allocator, "jemalloc", 8))
		return of_jemalloc(size);
	if (!strncmp(allocator, "tcmalloc", 8))
		return of_tcmalloc(size);
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
