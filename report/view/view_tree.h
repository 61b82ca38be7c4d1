/* view_tree.h - the stacks of a view as a tree by functions, for people */
#ifndef REPORT_VIEW_TREE_H
#define REPORT_VIEW_TREE_H

#include "report/view/tree.h"
#include "report/view/view.h"

/* Add all stacks of @view to the empty @tree, and sort it: recursions are folded, and processes
 * that are gone have no more than their root, as the view's options say.  @kinds says of what kind
 * each stack is, see tree_tell_kind(); NULL: nothing.  Returns 0 or -ENOMEM. */
int view_tree_fill(struct tree *tree, const struct view *view, const uint32_t *kinds);

#endif
