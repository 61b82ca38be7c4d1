/* idle_jemalloc.c - what is jemalloc's own, see idle.h
 *
 * Its descriptors of memory point to where blocks begin, and its threads' caches keep the addresses
 * of blocks that were taken out.  Both are found by what they look like (5.3; the former in 5.2,
 * too).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "format/trace.h"
#include "record/reach/idle.h"

/* Where its own memory begins, and how large it is at least (HUGEPAGE in pages.h). */
#define BASE_ALIGN IDLE_BASE_ALIGN
#define MOST_BASE  (1u << 30)

/* A block of that, struct base_block_s in base_structs.h: what of it was not used yet is in a
 * descriptor of its own. */
struct base_block {
	uint64_t size, next, bits, unused, unused_bytes;
};

/* A bin of a thread's cache, struct cache_bin_s in cache_bin.h: the addresses that it has are from
 * @head on. */
struct bin {
	uint64_t head, requests;
	uint16_t low_water, full, empty, padding;
};

/* So many follow each other, of 36 at least; and how far below a thread's descriptor they are. */
#define LEAST_BINS   24
#define THREAD_LOCAL (32u << 10)

static bool is_base(const struct base_block *b, uint64_t address)
{
	return b->size && b->size % BASE_ALIGN == 0 && b->size <= MOST_BASE &&
	       b->next % BASE_ALIGN == 0 && b->next != address && b->unused > address &&
	       b->unused_bytes < b->size && b->unused + b->unused_bytes == address + b->size;
}

uint64_t idle_jemalloc_base(const uint64_t *words, uint64_t address)
{
	struct base_block block;

	memcpy(&block, words, sizeof(block));
	return is_base(&block, address) ? block.size : 0;
}

/* Where the addresses of @bin are, which the low bits of their bounds tell; false: it is none. */
static bool find_slots(const struct bin *bin, struct idle_area *slots)
{
	const uint16_t taken = (uint16_t)((uint16_t)bin->head - bin->full);
	const uint16_t bytes = (uint16_t)(bin->empty - bin->full);

	if (!bin->head || bin->head % 8 || taken % 8 || bytes % 8 || taken > bytes)
		return false;
	slots->start = bin->head - taken;
	slots->end = slots->start + bytes;
	return true;
}

/* The slots of all @bins, at most @nr, that follow each other; false: these are too few. */
static bool find_cache(const struct bin *bins, size_t nr, struct idle_area *cache)
{
	struct idle_area slots;
	size_t i;

	for (i = 0; i < nr && find_slots(&bins[i], &slots); i++) {
		if (!i)
			*cache = slots;
		else if (slots.start != cache->end)
			break;
		cache->end = slots.end;
	}
	return i >= LEAST_BINS && cache->start < cache->end;
}

/* The cache of the thread with @descriptor is among its variables, which lie below. */
static int add_cache(struct idle *idle, const struct idle_memory *m, uint64_t descriptor)
{
	const struct mlk_range *r = idle_range_of(m, descriptor);
	uint64_t bytes = r ? (descriptor - r->start) & ~7ull : 0;
	struct idle_area cache = {0};
	bool found = false;
	char *copy;

	if (bytes > THREAD_LOCAL)
		bytes = THREAD_LOCAL;
	copy = malloc(bytes + 1);
	if (!copy)
		return -ENOMEM;
	if (!m->read(m->arg, descriptor - bytes, copy, bytes))
		for (size_t at = 0; bytes - at >= sizeof(struct bin) && !found; at += 8)
			found = find_cache((const struct bin *)(const void *)(copy + at),
					   (bytes - at) / sizeof(struct bin), &cache);
	free(copy);
	return found ? idle_add(idle, cache.start, cache.end) : 0;
}

int idle_jemalloc(struct idle *idle, const struct idle_memory *memory,
		  const struct idle_threads *threads)
{
	int err = 0;

	for (size_t i = 0; i < threads->nr && !err; i++)
		err = add_cache(idle, memory, threads->descriptors[i]);
	return err;
}
