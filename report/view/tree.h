/* tree.h - many stacks as one call tree, with what is outstanding below each call */
#ifndef REPORT_TREE_H
#define REPORT_TREE_H

#include "report/base/hash_index.h"
#include "report/base/json.h"
#include "report/base/strings.h"
#include "report/name/labels.h"

#define TREE_NONE UINT32_MAX /* no node */
#define TREE_ROOT 0	     /* the node above all paths, which is not shown */

/* A call, by a path of calls. */
struct tree_node {
	uint32_t parent, label;
	uint64_t bytes;	   /* outstanding at this node and below it */
	uint64_t blocks;   /* likewise */
	uint64_t suspects; /* of these blocks: they may have been freed */
	uint32_t first;	   /* its first child, or TREE_NONE */
	uint32_t recent;   /* the child that a stack was added to last, or TREE_NONE */
	uint32_t next;	   /* the next child of the same parent, or TREE_NONE */
	uint32_t places;   /* the first of its places, or TREE_NONE; see tree_by_function() */
	uint32_t least_times, most_times; /* it was repeated; 0: not told */
	uint32_t kind;			  /* of all stacks below it; 0: there is none */
};

#define TREE_MIXED UINT32_MAX /* stacks of several kinds, or of one that was not told */

/* What a label of a path stands for: the call, repeated so often. */
struct tree_repeat {
	uint32_t times;
	const uint32_t *labels; /* of each time: the same function, perhaps of other places */
	size_t nr;
};

/* A place in the source that calls of a function come from, or TREE_NONE. */
struct tree_place {
	uint32_t node;
	uint32_t label; /* with its location */
	uint64_t bytes; /* outstanding at the node, by this place */
	uint32_t next;	/* the next place of the node, in no order, or TREE_NONE */
};

/* All numbers of nodes are below nr; the arrays move with tree_add(). */
struct tree {
	INTERN_OF(struct tree_node);
	bool by_blocks;	   /* what weighs in it are blocks, else bytes: to be set by the user */
	const char **told; /* of each node; NULL: of none */
	/* Of tree_by_function(), else empty: */
	bool by_function;
	struct label_functions functions;
	INTERN_OF(struct tree_place) places;
};

/* A tree without nodes.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int tree_new(struct tree **out);

/*
 * From now on labels of one name and module are one, whatever their locations, which become the
 * places of the node: so the tree is the same where lines of the source are not known.  Once more
 * to be called before paths are added with labels that @labels (borrowed for the call) has not now.
 * Returns 0 or -ENOMEM.
 */
int tree_by_function(struct tree *tree, const struct labels *labels);

/* A stack, and what is outstanding of it. */
struct tree_stack {
	const uint32_t *path; /* labels from the root: numbers of struct labels */
	size_t nr;	      /* none: nothing is added */
	uint64_t bytes, blocks;
	uint64_t suspects;		   /* of these blocks: they may have been freed */
	uint32_t kind;			   /* it counts only if it is that of all stacks; 0: none */
	const struct tree_repeat *repeats; /* of each call; NULL: that is not told */
};

/* Add @stack.  Nodes with one parent and one label are the same node.  Returns 0 or -ENOMEM. */
int tree_add_stack(struct tree *tree, const struct tree_stack *stack);

/* The same of one of which no more is known.  Returns 0 or -ENOMEM. */
static inline int tree_add(struct tree *tree, const uint32_t *path, size_t nr, uint64_t bytes,
			   uint64_t blocks)
{
	const struct tree_stack stack = {.path = path, .nr = nr, .bytes = bytes, .blocks = blocks};

	return tree_add_stack(tree, &stack);
}

/* What @node weighs in @tree. */
static inline uint64_t tree_weight(const struct tree *tree, const struct tree_node *node)
{
	return tree->by_blocks ? node->blocks : node->bytes;
}

/* Order the roots, and the children of every node, by bytes, then blocks (both descending; by
 * blocks first, if they weigh), then the text of @labels: name, module, location.  Returns 0 or
 * -ENOMEM. */
int tree_sort(struct tree *tree, const struct labels *labels);

/*
 * Find the nodes that have a sibling of the same name, but of another module: from now on, until
 * more is added, tree_told() names their modules, in strings of @labels.  The tree is one by
 * function, or its labels have no locations.  Returns 0 or -ENOMEM.
 */
int tree_tell_apart(struct tree *tree, const struct labels *labels);

/* What is to be told of the module of node @number behind its name, see disambiguate(); NULL:
 * nothing.
 */
const char *tree_told(const struct tree *tree, uint32_t number);

/* The child of @parent with this label, or TREE_NONE. */
uint32_t tree_child(const struct tree *tree, uint32_t parent, uint32_t label);

/* Release @tree; NULL is allowed. */
void tree_free(struct tree *tree);

/* To be read by all. */
struct tree_names {
	const struct tree *tree;
	const struct labels *labels;
	struct strings *texts;
	uint32_t *numbers; /* by node; 0: it has none yet */
};

/* No texts yet.  @tree, which tree_tell_apart() was called for, and its @labels are borrowed until
 * tree_names_free().  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int tree_names_new(struct tree_names **out, const struct tree *tree, const struct labels *labels);

/* Give numbers to the texts of the nodes of a path that was added to the tree, in the order of
 * their addition: short names, and behind them in brackets what tree_told() has.  Returns 0 or
 * -ENOMEM.
 */
int tree_names_add(struct tree_names *names, const uint32_t *path, size_t nr);

/* Print all texts as the array @key, the first of which is "". */
void tree_names_print(const struct tree_names *names, struct json *json, const char *key);

/* Release @names; NULL is allowed. */
void tree_names_free(struct tree_names *names);

#endif
