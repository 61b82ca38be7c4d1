/* stacks.c - see stacks.h
 *
 * A stack that is looked for mostly begins like the one before it, whose nodes are kept at hand;
 * only the frames where they differ are looked for in the tree.
 */
#include "report/stacks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/array.h"
#include "report/hash_index.h"

#define NO_NODE UINT32_MAX /* above the outermost frames, and of a stack without any */

struct node {
	struct dwunw_frame frame;
	uint32_t parent; /* its caller */
};

/* A stack from its outermost frame on, with the nodes of its frames. */
struct path {
	struct dwunw_frame frames[STACK_MAX_FRAMES];
	uint32_t nodes[STACK_MAX_FRAMES];
	size_t nr;
};

struct stacks {
	struct stack *all;
	size_t nr, room;
	struct hash_index index; /* of all, by node and status */
	struct node *nodes;
	size_t nr_nodes, nodes_room;
	struct hash_index children; /* of nodes, by parent and frame */
	struct path last;	    /* the stack interned last */
};

_Static_assert(sizeof(struct dwunw_frame) == 24, "no padding: frames are compared as bytes");

int stacks_new(struct stacks **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static bool same_frame(const struct dwunw_frame *a, const struct dwunw_frame *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static bool same_node(const void *things, uint32_t number, const void *arg)
{
	const struct node *node = &((const struct stacks *)things)->nodes[number];
	const struct node *key = arg;

	return node->parent == key->parent && same_frame(&node->frame, &key->frame);
}

static int append_node(struct stacks *stacks, const struct node *node, uint64_t hash)
{
	struct node *nodes;

	if (stacks->nr_nodes >= NO_NODE)
		return -ENOMEM;
	nodes = array_grow(stacks->nodes, &stacks->nodes_room, stacks->nr_nodes + 1,
			   sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	stacks->nodes = nodes;
	if (hash_index_add(&stacks->children, hash, (uint32_t)stacks->nr_nodes))
		return -ENOMEM;
	nodes[stacks->nr_nodes++] = *node;
	return 0;
}

/* Find the node of @frame, called by @parent, or add it. */
static int child_of(struct stacks *stacks, uint32_t parent, const struct dwunw_frame *frame,
		    uint32_t *child)
{
	struct node key = {.parent = parent, .frame = *frame};
	struct hash_query query = {
		/* addr and flags nearly always follow from pc and module */
		.hash = hash_word((uint64_t)parent << 32 | frame->module, frame->pc),
		.things = stacks,
		.key = &key,
		.equal = same_node,
	};
	int err;

	if (hash_index_find(&stacks->children, &query, child))
		return 0;
	err = append_node(stacks, &key, query.hash);
	if (!err)
		*child = (uint32_t)(stacks->nr_nodes - 1);
	return err;
}

/* Find the nodes of all @frames.  Those of stacks->last are theirs as far as both are alike. */
static int follow(struct stacks *stacks, const struct dwunw_frame *frames, size_t nr)
{
	struct path *last = &stacks->last;
	size_t same = 0;

	assert(nr <= STACK_MAX_FRAMES);
	while (same < nr && same < last->nr &&
	       same_frame(&frames[nr - 1 - same], &last->frames[same]))
		same++;
	for (last->nr = same; last->nr < nr; last->nr++) {
		size_t at = last->nr;
		uint32_t parent = at ? last->nodes[at - 1] : NO_NODE;
		int err;

		last->frames[at] = frames[nr - 1 - at];
		err = child_of(stacks, parent, &last->frames[at], &last->nodes[at]);
		if (err)
			return err;
	}
	return 0;
}

static bool same_stack(const void *things, uint32_t number, const void *arg)
{
	const struct stack *stack = &((const struct stacks *)things)->all[number];
	const struct stack *key = arg;

	return stack->node == key->node && stack->status == key->status;
}

static int append_stack(struct stacks *stacks, const struct stack *stack, uint64_t hash)
{
	struct stack *all;

	if (stacks->nr >= UINT32_MAX)
		return -ENOMEM;
	all = array_grow(stacks->all, &stacks->room, stacks->nr + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	stacks->all = all;
	if (hash_index_add(&stacks->index, hash, (uint32_t)stacks->nr))
		return -ENOMEM;
	all[stacks->nr++] = *stack;
	return 0;
}

int stacks_intern(struct stacks *stacks, const struct dwunw_frame *frames, size_t nr,
		  enum dwunw_status status, uint32_t *number)
{
	struct stack key = {.status = status, .node = NO_NODE};
	struct hash_query query = {.things = stacks, .key = &key, .equal = same_stack};
	int err = follow(stacks, frames, nr);

	if (err)
		return err;
	if (nr)
		key.node = stacks->last.nodes[nr - 1];
	query.hash = hash_word(key.node, status);
	if (hash_index_find(&stacks->index, &query, number))
		return 0;
	err = append_stack(stacks, &key, query.hash);
	if (!err)
		*number = (uint32_t)(stacks->nr - 1);
	return err;
}

size_t stacks_nr(const struct stacks *stacks)
{
	return stacks->nr;
}

size_t stacks_nr_nodes(const struct stacks *stacks)
{
	return stacks->nr_nodes;
}

struct stack *stacks_get(const struct stacks *stacks, uint32_t number)
{
	return &stacks->all[number];
}

size_t stacks_frames(const struct stacks *stacks, uint32_t number,
		     struct dwunw_frame frames[STACK_MAX_FRAMES])
{
	uint32_t at = stacks->all[number].node;
	size_t nr = 0;

	for (; at != NO_NODE; at = stacks->nodes[at].parent)
		frames[nr++] = stacks->nodes[at].frame;
	return nr;
}

void stacks_free(struct stacks *stacks)
{
	if (!stacks)
		return;
	free(stacks->all);
	free(stacks->nodes);
	hash_index_release(&stacks->index);
	hash_index_release(&stacks->children);
	free(stacks);
}
