/* range_map.c - blocks of mmap by the addresses they cover: see live_state.h */
#include <errno.h>
#include <stdlib.h>

#include "report/base/hash_index.h"
#include "report/live/live_state.h"

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

const struct live_block *range_map_last(const struct range_map *map, uint64_t start, uint64_t end)
{
	const struct range_node *node = map->root, *last = NULL;

	while (node) {
		if (node->block.addr < end) {
			last = node;
			node = node->right;
		} else {
			node = node->left;
		}
	}
	return last && range_end(&last->block) > start ? &last->block : NULL;
}

void range_map_release(struct range_map *map)
{
	while (map->root) {
		struct range_node *node = map->root;

		map->root = join_ranges(node->left, node->right);
		free(node);
	}
}
