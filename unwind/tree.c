/* tree.c - see tree.h
 *
 * Few children are a list, the one used last first.  A node that gets more than that is wide: then
 * its children are in one hash with those of all wide nodes.
 */
#include "unwind/tree.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_ROOM 1024
#define MAX_LIST   8 /* children */
#define MAX_TREE   ((uint32_t)1 << 31)

int dwunw_tree_init(struct dwunw_tree *tree, const struct dwunw_seed *seed)
{
	*tree = (struct dwunw_tree){.room = FIRST_ROOM, .nr_slots = FIRST_ROOM};
	tree->seed = *seed;
	tree->nr = dwunw_tree_root(DWUNW_STATUS_NR);
	tree->nodes = calloc(tree->room, sizeof(*tree->nodes));
	tree->slots = calloc(tree->nr_slots, sizeof(*tree->slots));
	return tree->nodes && tree->slots ? 0 : -ENOMEM;
}

void dwunw_tree_release(struct dwunw_tree *tree)
{
	free(tree->nodes);
	free(tree->slots);
}

static size_t first_slot(const struct dwunw_tree *tree, uint32_t parent, uint32_t place)
{
	return dwunw_hash(&tree->seed, (uint64_t)parent << 32 | place, 0) & (tree->nr_slots - 1);
}

static void put(struct dwunw_tree *tree, uint32_t number)
{
	const struct dwunw_node *node = &tree->nodes[number];
	size_t i = first_slot(tree, node->parent, node->place);

	while (tree->slots[i])
		i = (i + 1) & (tree->nr_slots - 1);
	tree->slots[i] = number;
	tree->nr_used++;
}

/* Make room for @nr more slots to be used. */
static int grow_hash(struct dwunw_tree *tree, size_t nr)
{
	uint32_t *old = tree->slots, *slots;
	size_t nr_old = tree->nr_slots;

	if (2 * (tree->nr_used + nr) <= nr_old)
		return 0;
	slots = calloc(2 * nr_old, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	tree->slots = slots;
	tree->nr_slots *= 2;
	tree->nr_used = 0;
	for (size_t i = 0; i < nr_old; i++)
		if (old[i])
			put(tree, old[i]);
	free(old);
	return 0;
}

static int grow_nodes(struct dwunw_tree *tree)
{
	struct dwunw_node *nodes;

	if (tree->nr < tree->room)
		return 0;
	if (tree->nr >= MAX_TREE)
		return -ENOMEM;
	nodes = reallocarray(tree->nodes, 2 * tree->room, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	tree->nodes = nodes;
	tree->room *= 2;
	return 0;
}

static int add_child(struct dwunw_tree *tree, uint32_t parent, uint32_t place, uint32_t *child)
{
	uint32_t wide;

	if (grow_nodes(tree))
		return -ENOMEM;
	wide = tree->nodes[parent].child & DWUNW_TREE_WIDE;
	if (wide && grow_hash(tree, 1))
		return -ENOMEM;
	*child = tree->nr++;
	tree->nodes[*child] = (struct dwunw_node){
		.place = place,
		.parent = parent,
		.sibling = wide ? DWUNW_NO_NODE : tree->nodes[parent].child,
	};
	tree->nodes[parent].child = *child | wide;
	if (wide)
		put(tree, *child);
	return 0;
}

static int make_wide(struct dwunw_tree *tree, uint32_t parent)
{
	uint32_t first = tree->nodes[parent].child;

	if (grow_hash(tree, MAX_LIST))
		return -ENOMEM;
	for (uint32_t at = first; at; at = tree->nodes[at].sibling)
		put(tree, at);
	tree->nodes[parent].child = first | DWUNW_TREE_WIDE;
	return 0;
}

static uint32_t find_in_hash(const struct dwunw_tree *tree, uint32_t parent, uint32_t place)
{
	size_t i = first_slot(tree, parent, place);

	for (; tree->slots[i]; i = (i + 1) & (tree->nr_slots - 1)) {
		const struct dwunw_node *node = &tree->nodes[tree->slots[i]];

		if (node->place == place && node->parent == parent)
			return tree->slots[i];
	}
	return DWUNW_NO_NODE;
}

/* Find a child in the list and make it the first.  If it is not there, *len is that of the list. */
static uint32_t find_in_list(struct dwunw_tree *tree, uint32_t parent, uint32_t place, size_t *len)
{
	struct dwunw_node *nodes = tree->nodes;
	uint32_t *link = &nodes[parent].child;

	for (*len = 0; *link; link = &nodes[*link].sibling, ++*len) {
		uint32_t at = *link;

		if (nodes[at].place != place)
			continue;
		*link = nodes[at].sibling;
		nodes[at].sibling = nodes[parent].child;
		nodes[parent].child = at;
		return at;
	}
	return DWUNW_NO_NODE;
}

int dwunw_tree_other_child(struct dwunw_tree *tree, uint32_t parent, uint32_t place,
			   uint32_t *child)
{
	size_t len = 0;

	if (tree->nodes[parent].child & DWUNW_TREE_WIDE) {
		*child = find_in_hash(tree, parent, place);
		if (*child)
			tree->nodes[parent].child = *child | DWUNW_TREE_WIDE;
	} else {
		*child = find_in_list(tree, parent, place, &len);
	}
	if (*child)
		return 0;
	if (len == MAX_LIST && make_wide(tree, parent))
		return -ENOMEM;
	return add_child(tree, parent, place, child);
}
