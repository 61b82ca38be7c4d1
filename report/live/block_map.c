/* block_map.c - open addressing with linear probing, of the numbers of blocks that are stored
 * elsewhere
 *
 * Slots are small, so that a look through some of them is one at memory; and the place of a removed
 * block is used by the next one, so that it is still near.  A slot that becomes empty leaves no
 * mark: those behind it move up.  So a program that allocates and frees for days does not slow the
 * map down.
 */
#include "report/live/block_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/hash_index.h"
#include "report/base/prefetch.h"

#define FIRST_SLOTS 16 /* few: there may be many processes */
#define FIRST_ROOM  8
#define CACHE_LINE  64
#define MAX_BLOCKS  (UINT32_MAX / 2)

struct block_slot {
	uint32_t hash;	 /* the low half: where the slot would be best */
	uint32_t number; /* of the block's place, plus one; zero: empty */
};

struct block_place {
	uint64_t key;		 /* of a free place: the number of the next one, plus one */
	struct live_block block; /* its in_map says whether the place is used */
};

_Static_assert(sizeof(struct block_place) == CACHE_LINE,
	       "to come to a block is one look at memory");

static uint32_t hash_of(uint64_t key)
{
	return (uint32_t)hash_address(key);
}

/* The slot of @key, which has @hash, or the empty one where it would go.  The map must have slots.
 */
static struct block_slot *seek(const struct block_map *map, uint64_t key, uint32_t hash)
{
	const size_t mask = map->nr_slots - 1;
	size_t i = hash & mask;

	for (; map->slots[i].number; i = (i + 1) & mask)
		if (map->slots[i].hash == hash && map->places[map->slots[i].number - 1].key == key)
			break;
	return &map->slots[i];
}

void block_map_expect(const struct block_map *map, uint64_t key)
{
	if (map->nr_slots)
		prefetch(&map->slots[hash_of(key) & (map->nr_slots - 1)]);
}

void block_map_expect_place(const struct block_map *map, uint64_t key)
{
	const size_t mask = map->nr_slots - 1;
	const uint32_t hash = hash_of(key);

	if (!map->nr_slots)
		return;
	/* the first with this hash is nearly always it, and a look at its key would wait */
	for (size_t i = hash & mask; map->slots[i].number; i = (i + 1) & mask)
		if (map->slots[i].hash == hash) {
			prefetch(&map->places[map->slots[i].number - 1]);
			return;
		}
}

const struct live_block *block_map_find(const struct block_map *map, uint64_t key)
{
	uint32_t number = map->nr_blocks ? seek(map, key, hash_of(key))->number : 0;

	return number ? &map->places[number - 1].block : NULL;
}

static int grow_slots(struct block_map *map)
{
	const size_t nr = map->nr_slots ? map->nr_slots * 2 : FIRST_SLOTS;
	struct block_slot *slots = calloc(nr, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < map->nr_slots; i++) {
		size_t to = map->slots[i].hash & (nr - 1);

		if (!map->slots[i].number)
			continue;
		while (slots[to].number)
			to = (to + 1) & (nr - 1);
		slots[to] = map->slots[i];
	}
	free(map->slots);
	map->slots = slots;
	map->nr_slots = nr;
	return 0;
}

static int grow_places(struct block_map *map)
{
	const size_t room = map->places_room ? map->places_room * 2 : FIRST_ROOM;
	struct block_place *places;

	if (room > MAX_BLOCKS)
		return -ENOMEM;
	places = aligned_alloc(CACHE_LINE, room * sizeof(*places));
	if (!places)
		return -ENOMEM;
	if (map->nr_places)
		memcpy(places, map->places, map->nr_places * sizeof(*places));
	free(map->places);
	map->places = places;
	map->places_room = room;
	return 0;
}

/* Have room for one more block. */
static int make_room(struct block_map *map)
{
	int err = 0;

	if (map->nr_blocks >= map->nr_slots / 2)
		err = grow_slots(map);
	if (!err && !map->free && map->nr_places == map->places_room)
		err = grow_places(map);
	return err;
}

int block_map_put(struct block_map *map, uint64_t key, const struct live_block *block)
{
	const uint32_t hash = hash_of(key);
	struct block_slot *slot;
	struct block_place *place;
	uint32_t number;
	int err = make_room(map);

	if (err)
		return err;
	slot = seek(map, key, hash);
	if (slot->number)
		return -EEXIST;
	number = map->free;
	if (number)
		map->free = (uint32_t)map->places[number - 1].key;
	else
		number = (uint32_t)++map->nr_places;
	place = &map->places[number - 1];
	place->key = key;
	place->block = *block;
	place->block.in_map = true;
	*slot = (struct block_slot){hash, number};
	map->nr_blocks++;
	return 0;
}

/* Empty @slot, and move up what could not be found any more across the gap. */
static void vacate(struct block_map *map, const struct block_slot *slot)
{
	const size_t mask = map->nr_slots - 1;
	size_t hole = (size_t)(slot - map->slots);

	for (size_t i = (hole + 1) & mask; map->slots[i].number; i = (i + 1) & mask) {
		/* it may move if the hole lies between where it would be best and where it is */
		if (((i - map->slots[i].hash) & mask) < ((i - hole) & mask))
			continue;
		map->slots[hole] = map->slots[i];
		hole = i;
	}
	map->slots[hole].number = 0;
}

void block_map_drop(struct block_map *map, uint64_t key)
{
	struct block_slot *slot = seek(map, key, hash_of(key));
	struct block_place *place = &map->places[slot->number - 1];

	place->block.in_map = false;
	place->key = map->free;
	map->free = slot->number;
	map->nr_blocks--;
	vacate(map, slot);
}

bool block_map_take(struct block_map *map, uint64_t key, struct live_block *block)
{
	const struct live_block *found = block_map_find(map, key);

	if (!found)
		return false;
	*block = *found;
	block->in_map = false;
	block_map_drop(map, key);
	return true;
}

const struct live_block *block_map_next(const struct block_map *map, size_t *pos)
{
	while (*pos < map->nr_places) {
		const struct block_place *place = &map->places[(*pos)++];

		if (place->block.in_map)
			return &place->block;
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
	free(map->places);
	*map = (struct block_map){0};
}
