/* block_map.h - the blocks of a process by a key (an address, or a thread) */
#ifndef REPORT_BLOCK_MAP_H
#define REPORT_BLOCK_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_ORIGIN_MAX 0xffffffu

/* Does a mapping, or a piece of one, need memory? */
enum live_use {
	LIVE_IN_USE,	 /* it may; so do all other blocks */
	LIVE_RESERVED,	 /* it was never accessible */
	LIVE_GIVEN_BACK, /* madvise gave its memory back, and it was not used again */
};

/* What is known of a block.  An unknown one has only addr and tgid: its allocation was not seen. */
struct live_block {
	uint64_t addr;
	uint64_t size;	  /* bytes requested */
	uint64_t time_ns; /* CLOCK_MONOTONIC, when it was allocated */
	/* By sampling.h; all zero: it was not sampled, and represents itself. */
	uint64_t weight;     /* bytes that each of its bytes represents, in parts of one */
	uint64_t stands_for; /* blocks */
	uint32_t tgid;
	uint32_t tid;	/* the thread that got it */
	uint32_t stack; /* number of its stack */
	/* Together one word: a block and its key fill a line of the processor's cache. */
	uint32_t
		origin : 24; /* of the kernel's: that of its struct mlk_origin; else, or above, 0 */
	bool known : 1;
	bool mapped : 1;  /* by mmap: parts of it can be unmapped */
	bool part : 1;	  /* cut out of a block that lives on, and unmapped unless restored */
	uint32_t use : 2; /* enum live_use; what is not in use is not outstanding */
	bool in_map : 1;  /* of block_map.c: it is in the map; false in a block that was removed */
};

struct block_slot;
struct block_place;

/* All zero is an empty map. */
struct block_map {
	struct block_slot *slots;
	size_t nr_slots; /* zero or a power of two */
	size_t nr_blocks;
	struct block_place *places; /* of the blocks */
	size_t nr_places, places_room;
	uint32_t free; /* the first free one, plus one; 0: none is */
};

/* The block under @key, valid until the map is changed, or NULL. */
const struct live_block *block_map_find(const struct block_map *map, uint64_t key);

/* Put a copy of @block under @key.  Returns 0, -EEXIST: there is a block, and nothing was done, or
 * -ENOMEM. */
int block_map_put(struct block_map *map, uint64_t key, const struct live_block *block);

/* Take the block under @key, which must be there, out. */
void block_map_drop(struct block_map *map, uint64_t key);

/* Take the block under @key out into *@block.  Returns false when none is there. */
bool block_map_take(struct block_map *map, uint64_t key, struct live_block *block);

/* The next block at or after place *@pos (0 to begin with), in no order, or NULL at the end; valid
 * until the map is changed. */
const struct live_block *block_map_next(const struct block_map *map, size_t *pos);

/* Point *@list, which the caller frees, at the blocks in the order of their addresses, as many as
 * map->nr_blocks; they are valid until the map is changed.  It is NULL on failure.  Returns 0 or
 * -ENOMEM. */
int block_map_list(const struct block_map *map, const struct live_block ***list);

/* A look for the block with @key is to come: have its slot brought near meanwhile. */
void block_map_expect(const struct block_map *map, uint64_t key);

/* The same of its place, once the slot is near. */
void block_map_expect_place(const struct block_map *map, uint64_t key);

/* Release what @map holds and leave it empty. */
void block_map_release(struct block_map *map);

#endif
