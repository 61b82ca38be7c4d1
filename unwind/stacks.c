/* stacks.c - from a stack's id to its frames, and back */
#include <errno.h>
#include <stdbool.h>

#include "unwind/dwunw.h"
#include "unwind/module/dwunw_state.h"

static bool is_root(const struct dwunw_stack_tree *tree, uint32_t node)
{
	return !tree->nodes[node].place;
}

size_t dwunw_stack_frames(const struct dwunw *dw, uint32_t id, struct dwunw_frame *frames,
			  size_t max_frames)
{
	const struct dwunw_stacks *stacks = dw->stacks;
	size_t nr = 0;

	for (; nr < max_frames && !is_root(&stacks->tree, id); nr++) {
		const struct dwunw_node *node = &stacks->tree.nodes[id];
		const struct dwunw_place *place = &stacks->places.all[node->place];

		frames[nr] =
			(struct dwunw_frame){place->pc, place->addr, place->module, place->flags};
		id = dwunw_stack_tree_parent(node);
		if (is_root(&stacks->tree, id) && id != dwunw_stack_tree_root(DWUNW_STATUS_ENDED))
			frames[nr].flags |= DWUNW_FRAME_FLAG_PARTIAL;
	}
	return nr;
}

size_t dwunw_stack_places(const struct dwunw *dw, uint32_t id, uint32_t *places, size_t max_frames)
{
	const struct dwunw_stack_tree *tree = &dw->stacks->tree;
	size_t nr = 0;

	for (; nr < max_frames && !is_root(tree, id); nr++) {
		places[nr] = tree->nodes[id].place;
		id = dwunw_stack_tree_parent(&tree->nodes[id]);
	}
	return nr;
}

uint32_t dwunw_frame_place(const struct dwunw *dw, const struct dwunw_frame *frame)
{
	return dwunw_frame_table_find(&dw->stacks->places, frame);
}

uint32_t dwunw_stack_parent(const struct dwunw *dw, uint32_t id)
{
	return dwunw_stack_tree_parent(&dw->stacks->tree.nodes[id]);
}

enum dwunw_status dwunw_stack_status(const struct dwunw *dw, uint32_t id)
{
	const struct dwunw_stack_tree *tree = &dw->stacks->tree;

	while (!is_root(tree, id))
		id = dwunw_stack_tree_parent(&tree->nodes[id]);
	return (enum dwunw_status)(id - dwunw_stack_tree_root(DWUNW_STATUS_ENDED));
}

int dwunw_stack_intern(struct dwunw *dw, const struct dwunw_frame *frames, size_t nr,
		       enum dwunw_status status, uint32_t *id)
{
	struct dwunw_stacks *stacks = dw->stacks;
	uint32_t place, node = dwunw_stack_tree_root(status);
	int err = 0;

	if ((unsigned int)status >= DWUNW_STATUS_NR)
		return -EINVAL;
	while (nr-- > 0 && !err) {
		err = dwunw_frame_table_intern(&stacks->places, &frames[nr], &place);
		if (!err)
			err = dwunw_stack_tree_child(&stacks->tree, node, place, &node);
	}
	if (!err)
		*id = node;
	return err;
}

int dwunw_stack_add(struct dwunw *dw, uint32_t caller, const struct dwunw_frame *frame,
		    uint32_t *id)
{
	struct dwunw_stacks *stacks = dw->stacks;
	uint32_t place;
	int err = dwunw_frame_table_intern(&stacks->places, frame, &place);

	return err ? err : dwunw_stack_tree_child(&stacks->tree, caller, place, id);
}

uint32_t dwunw_stack_limit(const struct dwunw *dw)
{
	return dw->stacks->tree.nr;
}
