/* pc_cache.h - in one epoch of an address space: from a pc to its place, and to where it was last
 */
#ifndef DWUNW_PC_CACHE_H
#define DWUNW_PC_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/hash.h"
#include "unwind/tree/frame_table.h"

/* What a pc is looked up as, apart from its value. */
#define DWUNW_PC_RETURN ((uint32_t)1 << 30) /* a return address: the call is before it */
#define DWUNW_PC_STALE	((uint32_t)1 << 31) /* found by bytes from another moment */
#define DWUNW_PC_AS	(DWUNW_PC_RETURN | DWUNW_PC_STALE)
#define DWUNW_PC_SHIFT	30

_Static_assert(DWUNW_MAX_PLACES <= DWUNW_PC_RETURN, "numbers and these bits are apart");

/* What is known of a pc. */
struct dwunw_pc_slot {
	uint64_t pc;
	uint32_t place; /* its number and what the pc was looked up as; 0: the slot is free */
	/* a node of this place, and all above it are of this epoch too: a guess at what its callers
	 * will be; or NO_NODE */
	uint32_t node;
};

/* Zeroes make an empty one. */
struct dwunw_pc_cache {
	struct dwunw_pc_slot *slots; /* at most half full */
	size_t nr_slots;	     /* 0 or a power of two */
	size_t nr;
};

/* Free the slots, and make an empty one. */
void dwunw_pc_cache_release(struct dwunw_pc_cache *cache);

/* Add @pc, which must not be in yet, looked up as in @place, its place.  Returns its slot, or NULL
 * when out of memory; all slots may have moved. */
struct dwunw_pc_slot *dwunw_pc_cache_add(struct dwunw_pc_cache *cache,
					 const struct dwunw_seed *seed, uint64_t pc,
					 uint32_t place);

/* The slot of @pc looked up @as (bits of DWUNW_PC_AS), or NULL; valid until one is added.  Here,
 * not in the .c: it is on the hot path. */
static inline struct dwunw_pc_slot *dwunw_pc_cache_find(const struct dwunw_pc_cache *cache,
							const struct dwunw_seed *seed, uint64_t pc,
							uint32_t as)
{
	size_t mask = cache->nr_slots - 1;

	if (!cache->nr_slots)
		return NULL;
	for (size_t i = dwunw_hash_pc(seed, pc, as) & mask;; i = (i + 1) & mask) {
		struct dwunw_pc_slot *slot = &cache->slots[i];

		if (slot->pc == pc && slot->place && (slot->place & DWUNW_PC_AS) == as)
			return slot;
		if (!slot->place)
			return NULL;
	}
}

#endif
