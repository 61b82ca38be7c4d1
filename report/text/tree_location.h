/* tree_location.h - where the calls of a node of the tree are in the source */
#ifndef REPORT_TREE_LOCATION_H
#define REPORT_TREE_LOCATION_H

#include "report/view/tree.h"

/* Where the calls of @node are: FILE:LINE, or of several "FILE:LINE (BYTES), :LINE (BYTES), 2
 * more", the heaviest first; "" when it is not known; NULL: no memory.  It is of @labels or in
 * *@made, which the caller frees. */
const char *tree_location(const struct tree *tree, const struct labels *labels,
			  const struct tree_node *node, char **made);

#endif
