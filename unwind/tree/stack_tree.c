/* stack_tree.c - see stack_tree.h
 *
 * Few children are a list, the one used last first.  A node that gets more than that is wide: then
 * its children are in one hash with those of all wide nodes.
 */
#include "unwind/tree/stack_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "unwind/tree/pc_cache.h"

#define FIRST_ROOM 1024
#define MAX_LIST   8		       /* children */
#define MAX_TREE   ((uint32_t)1 << 27) /* 4 GiB */

static struct dwunw_rule node_rule(const struct dwunw_frame_table *places, uint32_t place)
{
	struct dwunw_rule rule = places->all[place].rule;

	if (rule.as != DWUNW_PC_RETURN >> DWUNW_PC_SHIFT)
		rule.kind |= DWUNW_NOT_RETURN;
	return rule;
}

/* Have room for @room nodes, at most twice MAX_TREE.  Pages of the kernel's, which it can move
 * without a copy: trees become large.  Returns 0 or -ENOMEM. */
static int enlarge(struct dwunw_stack_tree *tree, size_t room)
{
	const size_t had = tree->room * sizeof(*tree->nodes), len = room * sizeof(*tree->nodes);
	void *nodes =
		had ? mremap(tree->nodes, had, len, MREMAP_MAYMOVE)
		    : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (nodes == MAP_FAILED)
		return -ENOMEM;
	tree->nodes = nodes;
	tree->room = room;
	return 0;
}

int dwunw_stack_tree_init(struct dwunw_stack_tree *tree, const struct dwunw_frame_table *places,
			  const struct dwunw_seed *seed)
{
	*tree = (struct dwunw_stack_tree){.places = places,
					  .nr_slots = FIRST_ROOM,
					  .nr = dwunw_stack_tree_root(DWUNW_STATUS_NR)};
	tree->seed = *seed;
	tree->slots = calloc(tree->nr_slots, sizeof(*tree->slots));
	if (!tree->slots || enlarge(tree, FIRST_ROOM))
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->nr; i++)
		tree->nodes[i] = (struct dwunw_node){.rule = node_rule(places, 0)};
	return 0;
}

void dwunw_stack_tree_release(struct dwunw_stack_tree *tree)
{
	if (tree->nodes)
		munmap(tree->nodes, tree->room * sizeof(*tree->nodes));
	free(tree->slots);
}

static size_t first_slot(const struct dwunw_stack_tree *tree, uint32_t parent, uint32_t place)
{
	return dwunw_hash(&tree->seed, (uint64_t)parent << 32 | place, 0) & (tree->nr_slots - 1);
}

static void put(struct dwunw_stack_tree *tree, uint32_t number)
{
	const struct dwunw_node *node = &tree->nodes[number];
	size_t i = first_slot(tree, dwunw_stack_tree_parent(node), node->place);

	while (tree->slots[i])
		i = (i + 1) & (tree->nr_slots - 1);
	tree->slots[i] = number;
	tree->nr_used++;
}

/* Make room for @nr more slots to be used. */
static int grow_hash(struct dwunw_stack_tree *tree, size_t nr)
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

static int grow_nodes(struct dwunw_stack_tree *tree)
{
	if (tree->nr < tree->room)
		return 0;
	if (tree->nr >= MAX_TREE)
		return -ENOMEM;
	return enlarge(tree, 2 * tree->room);
}

static int add_child(struct dwunw_stack_tree *tree, uint32_t parent, uint32_t place,
		     uint32_t *child)
{
	uint32_t wide;

	if (grow_nodes(tree))
		return -ENOMEM;
	wide = tree->nodes[parent].child & DWUNW_TREE_WIDE;
	if (wide && grow_hash(tree, 1))
		return -ENOMEM;
	*child = tree->nr++;
	tree->nodes[*child] = (struct dwunw_node){
		.pc = tree->places->all[place].pc,
		.rule = node_rule(tree->places, place),
		.up = parent * (uint32_t)sizeof(struct dwunw_node),
		.place = place,
		.sibling = wide ? DWUNW_NO_NODE : tree->nodes[parent].child,
	};
	tree->nodes[parent].child = *child | wide;
	if (wide)
		put(tree, *child);
	return 0;
}

static int make_wide(struct dwunw_stack_tree *tree, uint32_t parent)
{
	uint32_t first = tree->nodes[parent].child;

	if (grow_hash(tree, MAX_LIST))
		return -ENOMEM;
	for (uint32_t at = first; at; at = tree->nodes[at].sibling)
		put(tree, at);
	tree->nodes[parent].child = first | DWUNW_TREE_WIDE;
	return 0;
}

static uint32_t find_in_hash(const struct dwunw_stack_tree *tree, uint32_t parent, uint32_t place)
{
	size_t i = first_slot(tree, parent, place);

	for (; tree->slots[i]; i = (i + 1) & (tree->nr_slots - 1)) {
		const struct dwunw_node *node = &tree->nodes[tree->slots[i]];

		if (node->place == place && dwunw_stack_tree_parent(node) == parent)
			return tree->slots[i];
	}
	return DWUNW_NO_NODE;
}

/* Find a child in the list and make it the first.  If it is not there, *len is that of the list. */
static uint32_t find_in_list(struct dwunw_stack_tree *tree, uint32_t parent, uint32_t place,
			     size_t *len)
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

int dwunw_stack_tree_other_child(struct dwunw_stack_tree *tree, uint32_t parent, uint32_t place,
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
