/* print_tree.h - the leak tree, for people */
#ifndef REPORT_PRINT_TREE_H
#define REPORT_PRINT_TREE_H

#include <stdio.h>

#include "report/context/growth_rows.h"
#include "report/view/tree.h"
#include "report/view/view.h"

/*
 * Print the sorted @tree, at most VIEW_MAX_PATH deep, whose labels are @labels: a line for each
 * node, roots apart by empty lines.  A path without branches keeps its indentation.  @order tells
 * the reader how paths run, as "callers first".  Errors of writing are left in @out for ferror().
 */
void print_tree(FILE *out, const struct tree *tree, const struct labels *labels, const char *order);

/* Print the stacks of @view as a tree, or that there are none, and how many were left out.
 * @grown, or NULL: the line says so above which all stacks grow, fill a cache or replace older
 * blocks.  Returns 0 or -ENOMEM; errors of writing are left in @out for ferror(). */
int print_view_as_tree(FILE *out, const struct view *view, const char *order,
		       const struct growth_rows *grown);

#endif
