/* block_map.c - open addressing with linear probing
 *
 * A block that is taken out leaves no mark: those behind it move up.  So a program that allocates
 * and frees for days does not slow the map down.
 */
#include "report/block_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/hash_index.h"

#define FIRST_SLOTS 8 /* few: there may be many processes */
#define CACHE_LINE  64

struct block_slot {
	uint64_t key;
	struct live_block block; /* its in_map says whether the slot is used */
};

_Static_assert(sizeof(struct block_slot) == CACHE_LINE, "a look for a block is one at memory");

static size_t home(const struct block_map *map, uint64_t key)
{
	return hash_address(key) & (map->nr_slots - 1);
}

/* The slot of @key, or the empty one where it would go.  The map must have slots. */
static struct block_slot *seek(const struct block_map *map, uint64_t key)
{
	size_t i = home(map, key);

	while (map->slots[i].block.in_map && map->slots[i].key != key)
		i = (i + 1) & (map->nr_slots - 1);
	return &map->slots[i];
}

void block_map_expect(const struct block_map *map, uint64_t key)
{
	if (map->nr_slots)
		__builtin_prefetch(&map->slots[home(map, key)], 1);
}

const struct live_block *block_map_find(const struct block_map *map, uint64_t key)
{
	const struct block_slot *slot;

	if (!map->nr_blocks)
		return NULL;
	slot = seek(map, key);
	return slot->block.in_map ? &slot->block : NULL;
}

static int grow(struct block_map *map)
{
	struct block_map larger = {
		.nr_slots = map->nr_slots ? map->nr_slots * 2 : FIRST_SLOTS,
		.nr_blocks = map->nr_blocks,
	};

	larger.slots = aligned_alloc(CACHE_LINE, larger.nr_slots * sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	memset(larger.slots, 0, larger.nr_slots * sizeof(*larger.slots));
	for (size_t i = 0; i < map->nr_slots; i++) {
		const struct block_slot *slot = &map->slots[i];

		if (slot->block.in_map)
			*seek(&larger, slot->key) = *slot;
	}
	free(map->slots);
	*map = larger;
	return 0;
}

int block_map_put(struct block_map *map, uint64_t key, const struct live_block *block)
{
	struct block_slot *slot;

	if (map->nr_blocks >= map->nr_slots / 4 * 3 && grow(map))
		return -ENOMEM;
	slot = seek(map, key);
	*slot = (struct block_slot){.key = key, .block = *block};
	slot->block.in_map = true;
	map->nr_blocks++;
	return 0;
}

/* Empty slot @hole, and move up what could not be found any more across the gap. */
static void vacate(struct block_map *map, size_t hole)
{
	size_t mask = map->nr_slots - 1;

	map->nr_blocks--;
	for (size_t i = (hole + 1) & mask; map->slots[i].block.in_map; i = (i + 1) & mask) {
		struct block_slot *slot = &map->slots[i];
		size_t first = home(map, slot->key);

		/* it may move if the hole lies between its home and where it is now */
		if (((i - first) & mask) < ((i - hole) & mask))
			continue;
		map->slots[hole] = *slot;
		hole = i;
	}
	map->slots[hole].block.in_map = false;
}

void block_map_drop(struct block_map *map, const struct live_block *block)
{
	const char *slot = (const char *)block - offsetof(struct block_slot, block);

	vacate(map, (size_t)((const struct block_slot *)(const void *)slot - map->slots));
}

bool block_map_take(struct block_map *map, uint64_t key, struct live_block *block)
{
	struct block_slot *slot;

	if (!map->nr_blocks)
		return false;
	slot = seek(map, key);
	if (!slot->block.in_map)
		return false;
	*block = slot->block;
	block->in_map = false;
	vacate(map, (size_t)(slot - map->slots));
	return true;
}

const struct live_block *block_map_next(const struct block_map *map, size_t *pos)
{
	while (*pos < map->nr_slots) {
		const struct block_slot *slot = &map->slots[(*pos)++];

		if (slot->block.in_map)
			return &slot->block;
	}
	return NULL;
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = (*(const struct live_block *const *)a)->addr;
	uint64_t y = (*(const struct live_block *const *)b)->addr;

	return x < y ? -1 : x > y;
}

int block_map_list(const struct block_map *map, const struct live_block ***list)
{
	const struct live_block *block;
	size_t pos = 0, nr = 0;

	*list = calloc(map->nr_blocks + 1, sizeof(**list));
	if (!*list)
		return -ENOMEM;
	while ((block = block_map_next(map, &pos)))
		(*list)[nr++] = block;
	qsort(*list, nr, sizeof(**list), compare_addresses);
	return 0;
}

void block_map_release(struct block_map *map)
{
	free(map->slots);
	*map = (struct block_map){0};
}
