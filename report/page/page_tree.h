/* page_tree.h - the call tree of a page: its nodes, their names, modules and lines */
#ifndef REPORT_PAGE_TREE_H
#define REPORT_PAGE_TREE_H

#include "report/page/pack.h"
#include "report/view/places.h"
#include "report/view/tree.h"

#define PAGE_MAX_NODES 100000 /* in a page; of what is left out the sum is told */

/* The path of a stack, outermost first; lines are numbers of page_tree_line(). */
struct page_path {
	uint32_t labels[VIEW_MAX_PATH], lines[VIEW_MAX_PATH];
	uint32_t times[VIEW_MAX_PATH]; /* the call repeats there; 1: it does not */
	size_t nr;
};

/* How often a node is repeated in the stacks that have it. */
struct page_times {
	uint32_t least, most;
};

/* A line of the source, with whether the function in it was inlined as its lowest bit. */
struct page_line {
	uint32_t file, line;
};

/* To be read by all. */
struct page_tree {
	const struct labels *labels; /* borrowed */
	struct tree *tree;
	struct tree_names *names; /* after page_tree_name() */
	struct strings *files;
	INTERN_OF(struct page_line) lines;
	uint32_t *line_of; /* by node: its line in the first path added */
	size_t room;
	struct page_times *times; /* by node */
	size_t times_room;
	uint32_t *numbers; /* by node: its place in the page, after page_tree_name() */
};

/* No nodes yet; @labels is borrowed until page_tree_release(), which is due in any case.  Returns 0
 * or -ENOMEM. */
int page_tree_init(struct page_tree *tree, const struct labels *labels);

/* The number of the line of @place, 0 if it is not known.  Returns 0 or -ENOMEM. */
int page_tree_line(struct page_tree *tree, const struct place *place, uint32_t *number);

/* Make @path of the @nr places @steps of @places, innermost first, whose labels are @numbers by
 * place, with @root outside of it unless that is TREE_NONE.  Returns 0 or -ENOMEM. */
int page_tree_path(struct page_tree *tree, struct page_path *path, const struct places *places,
		   const uint32_t *steps, size_t nr, const uint32_t *numbers, uint32_t root);

/* Add the nodes of @path.  Returns 0 or -ENOMEM. */
int page_tree_add(struct page_tree *tree, const struct page_path *path);

/* Are as many nodes there as a page is to have? */
bool page_tree_is_full(const struct page_tree *tree);

/* All paths were added: number the nodes.  page_tree_name_path() is then due for each path.
 * Returns 0 or -ENOMEM. */
int page_tree_name(struct page_tree *tree);

/* Name the nodes of @path, which was added.  Returns 0 or -ENOMEM. */
int page_tree_name_path(struct page_tree *tree, const struct page_path *path);

/* Append the number of @path's last node, and where its lines are others than those of the nodes:
 * how many, and for each by how many frames it is outside of the innermost one, and its line. */
void page_tree_pack(const struct page_tree *tree, const struct page_path *path, struct pack *pack);

/* Write the members "texts", "modules", "names", "files", "lines", "nodes" and "repeats" into the
 * object that is open.  Returns 0 or -ENOMEM. */
int page_tree_put(const struct page_tree *tree, struct json *json);

/* Release what @tree holds. */
void page_tree_release(struct page_tree *tree);

#endif
