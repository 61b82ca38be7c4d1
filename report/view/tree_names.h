/* tree_names.h - the texts of a tree's nodes, for formats that refer to them by numbers */
#ifndef REPORT_TREE_NAMES_H
#define REPORT_TREE_NAMES_H

#include "report/base/json.h"
#include "report/view/tree.h"

struct tree_names; /* opaque */

/* No texts yet.  @tree, which tree_tell_apart() was called for, and its @labels are borrowed until
 * tree_names_free().  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int tree_names_new(struct tree_names **out, const struct tree *tree, const struct labels *labels);

/* Give numbers to the texts of the nodes of a path that was added to the tree, in the order of
 * their addition: names, and behind them in brackets what tree_told() has.  Returns 0 or -ENOMEM.
 */
int tree_names_add(struct tree_names *names, const uint32_t *path, size_t nr);

/* The number of the text of @node, whose path was added. */
uint32_t tree_names_of(const struct tree_names *names, uint32_t node);

/* Print all texts as the array @key, the first of which is "". */
void tree_names_print(const struct tree_names *names, struct json *json, const char *key);

/* Release @names; NULL is allowed. */
void tree_names_free(struct tree_names *names);

#endif
