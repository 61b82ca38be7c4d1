/* pc_cache.c - see pc_cache.h */
#include "unwind/tree/pc_cache.h"

#include <stdlib.h>

#define FIRST_SLOTS 256

void dwunw_pc_cache_release(struct dwunw_pc_cache *cache)
{
	free(cache->slots);
	*cache = (struct dwunw_pc_cache){0};
}

static struct dwunw_pc_slot *put(struct dwunw_pc_cache *cache, const struct dwunw_seed *seed,
				 struct dwunw_pc_slot slot)
{
	size_t mask = cache->nr_slots - 1;
	size_t i = dwunw_hash_pc(seed, slot.pc, slot.place & DWUNW_PC_AS) & mask;

	while (cache->slots[i].place)
		i = (i + 1) & mask;
	cache->slots[i] = slot;
	return &cache->slots[i];
}

struct dwunw_pc_slot *dwunw_pc_cache_add(struct dwunw_pc_cache *cache,
					 const struct dwunw_seed *seed, uint64_t pc, uint32_t place)
{
	struct dwunw_pc_cache larger = *cache;

	if (2 * cache->nr >= cache->nr_slots) {
		larger.nr_slots = cache->nr_slots ? 2 * cache->nr_slots : FIRST_SLOTS;
		larger.slots = calloc(larger.nr_slots, sizeof(*larger.slots));
		if (!larger.slots)
			return NULL;
		for (size_t i = 0; i < cache->nr_slots; i++)
			if (cache->slots[i].place)
				put(&larger, seed, cache->slots[i]);
		free(cache->slots);
		*cache = larger;
	}
	cache->nr++;
	return put(cache, seed, (struct dwunw_pc_slot){.pc = pc, .place = place});
}
