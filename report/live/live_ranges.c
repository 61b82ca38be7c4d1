/* live_ranges.c - what mmap gave out can be unmapped in parts: each piece that is left is a block
 */
#include "report/live/live_state.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/hash_index.h"

#define PAGE_SIZE 4096u /* unmapping rounds up to it; x86-64 */

struct range_node {
	struct live_block block;
	uint64_t rank;
	struct range_node *left, *right;
};

uint64_t range_end(const struct live_block *block)
{
	uint64_t end;

	return __builtin_add_overflow(block->addr, block->size, &end) ? UINT64_MAX : end;
}

/* Part @tree into the blocks below @addr and the others. */
static void split_ranges(struct range_node *tree, uint64_t addr, struct range_node **below,
			 struct range_node **others)
{
	while (tree) {
		if (tree->block.addr < addr) {
			*below = tree;
			below = &tree->right;
			tree = tree->right;
		} else {
			*others = tree;
			others = &tree->left;
			tree = tree->left;
		}
	}
	*below = NULL;
	*others = NULL;
}

/* One tree of two, all of whose @low lie below those of @high. */
static struct range_node *join_ranges(struct range_node *low, struct range_node *high)
{
	struct range_node *tree, **at = &tree;

	while (low && high) {
		if (low->rank > high->rank) {
			*at = low;
			at = &low->right;
			low = low->right;
		} else {
			*at = high;
			at = &high->left;
			high = high->left;
		}
	}
	*at = low ? low : high;
	return tree;
}

int range_map_put(struct range_map *map, const struct live_block *block)
{
	struct range_node *node = malloc(sizeof(*node)), *below, *others;

	if (!node)
		return -ENOMEM;
	*node = (struct range_node){.block = *block, .rank = hash_word(0, block->addr)};
	split_ranges(map->root, block->addr, &below, &others);
	map->root = join_ranges(join_ranges(below, node), others);
	return 0;
}

bool range_map_take(struct range_map *map, uint64_t start, uint64_t end, struct live_block *block)
{
	struct range_node **at = &map->root, **last = NULL, *node;

	/* Blocks do not overlap: if any reaches into the range, the last that begins before its end
	 * does. */
	while (*at) {
		if ((*at)->block.addr < end) {
			last = at;
			at = &(*at)->right;
		} else {
			at = &(*at)->left;
		}
	}
	if (!last || range_end(&(*last)->block) <= start)
		return false;
	node = *last;
	*block = node->block;
	*last = join_ranges(node->left, node->right);
	free(node);
	return true;
}

const struct live_block *range_map_from(const struct range_map *map, uint64_t addr)
{
	const struct range_node *node = map->root, *first = NULL;

	while (node) {
		if (node->block.addr >= addr) {
			first = node;
			node = node->left;
		} else {
			node = node->right;
		}
	}
	return first ? &first->block : NULL;
}

void range_map_release(struct range_map *map)
{
	while (map->root) {
		struct range_node *node = map->root;

		map->root = join_ranges(node->left, node->right);
		free(node);
	}
}

/* Put back what lies of @block in [@start, @end). */
static int put_piece(struct live *live, struct process *process, const struct live_block *block,
		     uint64_t start, uint64_t end)
{
	struct live_block piece = *block;
	int err;

	if (start >= end)
		return 0;
	piece.addr = start;
	piece.size = end - start;
	err = range_map_put(&process->ranges, &piece);
	if (!err)
		live_add(live, LIVE_OUTSTANDING, &piece);
	return err;
}

/* Cut [@start, @end) out of a block of mmap.  Returns 1 with what was cut out in *@cut, 0 when none
 * is left that overlaps, or -ENOMEM. */
static int cut_range(struct live *live, struct process *process, uint64_t start, uint64_t end,
		     struct live_block *cut)
{
	struct live_block block;
	uint64_t block_end;
	int err;

	if (!range_map_take(&process->ranges, start, end, &block))
		return 0;
	block_end = range_end(&block);
	live_subtract(live, LIVE_OUTSTANDING, &block);
	*cut = block;
	cut->addr = block.addr > start ? block.addr : start;
	cut->size = (block_end < end ? block_end : end) - cut->addr;
	cut->part = cut->size < block.size;
	if (cut->addr > block.addr && block_end > end)
		live_add_block(live, LIVE_ALLOCATED, &block);
	err = put_piece(live, process, &block, block.addr, cut->addr);
	if (!err)
		err = put_piece(live, process, &block, end, block_end);
	return err ? err : 1;
}

int live_on_map(struct live *live, struct process *process, struct live_block *block)
{
	struct live_block old;
	int err;

	block->size = range_end(block) - block->addr;
	if (!block->size)
		return 0; /* no mapping is empty */
	while ((err = cut_range(live, process, block->addr, range_end(block), &old)) > 0)
		live_add_part(live, LIVE_IMPLIED, &old);
	live_add(live, LIVE_ALLOCATED, block);
	return err ? err : put_piece(live, process, block, block->addr, range_end(block));
}

int live_on_unmap(struct live *live, struct process *process, const struct mlk_event *event)
{
	uint64_t end = event->addr + event->size;
	struct live_block old;
	uint32_t n = 0;
	int err;

	end = end < event->addr || end > UINT64_MAX - PAGE_SIZE
		      ? UINT64_MAX
		      : (end + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
	/* First the range itself, by which its RESTORE knows it. */
	old = (struct live_block){.addr = event->addr, .mapped = true};
	err = block_map_put(&process->pending, live_pending_key(event->tid, n++), &old);
	if (err)
		return err;
	while ((err = cut_range(live, process, event->addr, end, &old)) > 0) {
		err = block_map_put(&process->pending, live_pending_key(event->tid, n++), &old);
		if (err)
			return err;
	}
	return err;
}

int live_put_back(struct live *live, struct process *process, uint32_t tid)
{
	struct live_block block;
	int err = 0;

	for (uint32_t n = 1;
	     !err && block_map_take(&process->pending, live_pending_key(tid, n), &block); n++) {
		if (block.part)
			live_add_block(live, LIVE_ALLOCATED, &block);
		block.part = false;
		err = put_piece(live, process, &block, block.addr, range_end(&block));
	}
	return err;
}
