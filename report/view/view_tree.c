/* view_tree.c - see view_tree.h */
#include "report/view/view_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "report/view/recursion.h"

static int add_path(struct tree *tree, const struct stack *stack, const uint32_t *path, size_t nr,
		    uint32_t kind)
{
	int err = tree_add(tree, path, nr, stack->bytes, stack->blocks);

	if (!err)
		err = tree_tell_kind(tree, path, nr, kind);
	return err ? err : tree_mark(tree, path, nr, stack->suspects);
}

/* Add stack @i of @view, whose repetitions @recursion folds unless it is NULL. */
static int add_stack(struct tree *tree, const struct view *view, size_t i, uint32_t kind,
		     struct recursion *recursion, struct recursion_path *folded)
{
	const struct stack *stack = view_stack(view, i);
	uint32_t path[VIEW_MAX_PATH];
	size_t nr = view_path(view, i, path);
	int err;

	/* of what was outstanding when they exited there is nothing to be found any more */
	if (view->roots && view->gone[stack->process])
		nr = 1;
	if (!recursion)
		return add_path(tree, stack, path, nr, kind);
	err = recursion_fold(recursion, path, nr, folded);
	if (!err)
		err = add_path(tree, stack, folded->labels, folded->nr, kind);
	return err ? err
		   : tree_note_repeats(tree, folded->labels, folded->nr, folded->repeats,
				       stack->bytes);
}

/* Have all labels that folded paths will have: a tree by functions is of those it knows. */
static int add_labels_of_recursion(const struct view *view, struct recursion *recursion,
				   struct recursion_path *folded)
{
	uint32_t path[VIEW_MAX_PATH];
	int err = recursion_init(recursion, view->labels);

	for (size_t i = 0; i < view->nr && !err; i++)
		err = recursion_fold(recursion, path, view_path(view, i, path), folded);
	return err;
}

int view_tree_fill(struct tree *tree, const struct view *view, const uint32_t *kinds)
{
	bool folds = !view->opts.full_recursion;
	struct recursion recursion = {0};
	struct recursion_path *folded = malloc(sizeof(*folded));
	int err = folded ? 0 : -ENOMEM;

	if (!err && folds)
		err = add_labels_of_recursion(view, &recursion, folded);
	if (!err)
		err = tree_by_function(tree, view->labels);
	for (size_t i = 0; i < view->nr && !err; i++)
		err = add_stack(tree, view, i, kinds ? kinds[i] : 0, folds ? &recursion : NULL,
				folded);
	recursion_release(&recursion);
	free(folded);
	tree->by_blocks = view->opts.cost == COST_BLOCKS;
	if (!err)
		err = tree_sort(tree, view->labels);
	return err ? err : tree_tell_apart(tree, view->labels);
}
