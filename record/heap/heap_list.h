/* heap_list.h - blocks that a walk through an allocator's memory met */
#ifndef RECORD_HEAP_LIST_H
#define RECORD_HEAP_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_NO_ARENA	 UINT32_MAX
#define HEAP_MOST_BLOCKS (UINT64_C(1) << 26) /* that are looked at */

/* A block, as struct mlk_heap_block has it. */
struct heap_block {
	uint64_t address, size;
	uint64_t words[2]; /* its first ones */
	uint32_t sum;	   /* of its first bytes */
	uint32_t arena;	   /* its number; HEAP_NO_ARENA: it has a mapping of its own */
	uint8_t state;	   /* enum mlk_heap_state */
};

/* Blocks.  All zero: none. */
struct heap_list {
	struct heap_block *v;
	size_t nr, room;
};

/* Add a copy of @block.  Returns 0, -ENOMEM, or -E2BIG: there are HEAP_MOST_BLOCKS. */
int heap_list_add(struct heap_list *list, const struct heap_block *block);

/* Sort by address; of blocks that overlap the first stays. */
void heap_list_sort(struct heap_list *list);

/* Of a sorted list: the block that begins at @address, or NULL. */
struct heap_block *heap_list_find(const struct heap_list *list, uint64_t address);

/* The same: the number of the first one that ends behind @address. */
size_t heap_list_behind(const struct heap_list *list, uint64_t address);

/* Forget all. */
void heap_list_release(struct heap_list *list);

/* A sum of @len bytes, by which contents are compared. */
uint32_t heap_sum(const uint8_t *bytes, size_t len);

#endif
