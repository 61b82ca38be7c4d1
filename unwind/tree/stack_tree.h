/* stack_tree.h - all stacks as paths of one tree: callers first, and the innermost frame's node is
 * the id
 *
 * A stack's status is above its outermost frame, as a root of its own.  So a node says all of the
 * stack, and equal stacks are those with one node.
 */
#ifndef DWUNW_STACK_TREE_H
#define DWUNW_STACK_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/dwunw.h"
#include "unwind/elf/hash.h"
#include "unwind/tree/frame_table.h"

#define DWUNW_NO_NODE	 0u    /* its parent is itself, its place none */
#define DWUNW_NOT_RETURN 0x80u /* of rule.kind: that pc was not looked up as a return address */
#define DWUNW_TREE_WIDE	 ((uint32_t)1 << 31) /* of child: the children are in the hash */

/* What the hot loop looks at comes first: half a cache line, and nothing else of a frame. */
struct dwunw_node {
	uint64_t pc;		/* of the place, as its rule */
	struct dwunw_rule rule; /* kind: and NOT_RETURN */
	uint32_t up;		/* the bytes from the first node to its caller */
	uint32_t place;		/* number of the frame's place; 0 in a root */
	uint32_t child;		/* the one used last, or NO_NODE; and WIDE */
	uint32_t sibling;	/* the next child of parent, if that is not wide */
};

/* All stacks of an unwinder. */
struct dwunw_stack_tree {
	struct dwunw_node *nodes; /* on a cache line's boundary */
	const struct dwunw_frame_table *places;
	uint32_t nr;
	size_t room;
	uint32_t *slots; /* of a hash of the children of wide nodes, at most half full; 0: free */
	size_t nr_slots, nr_used;
	struct dwunw_seed seed;
};

_Static_assert(sizeof(struct dwunw_node) == 32, "two in a cache line");

/* A tree of roots, for frames at @places, which must outlive it.  Returns 0 or -ENOMEM; to be
 * released in both cases. */
int dwunw_stack_tree_init(struct dwunw_stack_tree *tree, const struct dwunw_frame_table *places,
			  const struct dwunw_seed *seed);
void dwunw_stack_tree_release(struct dwunw_stack_tree *tree);

/* The number of @node's parent. */
static inline uint32_t dwunw_stack_tree_parent(const struct dwunw_node *node)
{
	return node->up / (uint32_t)sizeof(*node);
}

/* The node above the outermost frame of stacks with @status. */
static inline uint32_t dwunw_stack_tree_root(enum dwunw_status status)
{
	return 1 + (uint32_t)status;
}

/* dwunw_stack_tree_child() where it is not the child used last. */
int dwunw_stack_tree_other_child(struct dwunw_stack_tree *tree, uint32_t parent, uint32_t place,
				 uint32_t *child);

/* Find the child of @parent with @place, or add it.  On success *child is set; tree->nodes may have
 * moved.  Returns 0 or -ENOMEM. */
static inline int dwunw_stack_tree_child(struct dwunw_stack_tree *tree, uint32_t parent,
					 uint32_t place, uint32_t *child)
{
	uint32_t last = tree->nodes[parent].child & ~DWUNW_TREE_WIDE;

	if (tree->nodes[last].place != place)
		return dwunw_stack_tree_other_child(tree, parent, place, child);
	*child = last;
	return 0;
}

#endif
