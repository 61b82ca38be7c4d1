/* view_tree.c - see view_tree.h */
#include "report/view/view_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "report/view/recursion.h"

/* Add stack @i of @view, whose repetitions @recursion folds unless it is NULL. */
static int add_stack(struct tree *tree, const struct view *view, size_t i, uint32_t kind,
		     struct recursion *recursion, struct recursion_path *folded)
{
	const struct stack *stack = view_stack(view, i);
	uint32_t path[VIEW_MAX_PATH];
	struct tree_stack added = {
		.path = path,
		.nr = view_path(view, i, path),
		.bytes = stack->bytes,
		.blocks = stack->blocks,
		.suspects = stack->suspects,
		.kind = kind,
	};
	int err = 0;

	/* of what was outstanding when they exited there is nothing to be found any more */
	if (view->roots && view->gone[stack->process])
		added.nr = 1;
	if (recursion) {
		err = recursion_fold(recursion, path, added.nr, folded);
		added.path = folded->labels;
		added.nr = folded->nr;
		added.repeats = folded->repeats;
	}
	/* to fold may add labels */
	if (!err)
		err = tree_by_function(tree, view->labels);
	return err ? err : tree_add_stack(tree, &added);
}

int view_tree_fill(struct tree *tree, const struct view *view, const uint32_t *kinds)
{
	bool folds = !view->opts.full_recursion;
	struct recursion recursion = {0};
	struct recursion_path *folded = malloc(sizeof(*folded));
	uint32_t *order = view_as_met(view, view->nr);
	int err = folded && order ? 0 : -ENOMEM;

	if (!err && folds)
		err = recursion_init(&recursion, view->labels);
	for (size_t at = 0; at < view->nr && !err; at++)
		err = add_stack(tree, view, order[at], kinds ? kinds[order[at]] : 0,
				folds ? &recursion : NULL, folded);
	recursion_release(&recursion);
	free(folded);
	free(order);
	tree->by_blocks = view->opts.cost == COST_BLOCKS;
	if (!err)
		err = tree_sort(tree, view->labels);
	return err ? err : tree_tell_apart(tree, view->labels);
}
