/* tree.c - see tree.h; node 0 is the one above the roots */
#include "report/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/array.h"
#include "report/hash_index.h"

struct tree {
	struct tree_node *nodes;
	uint32_t *parents; /* of each node; kept apart, as only tree_add() needs it */
	size_t nr, room, parents_room;
	struct hash_index children; /* by parent and label */
};

struct child_key {
	uint32_t parent, label;
};

static int append(struct tree *tree, uint32_t parent, uint32_t label)
{
	struct tree_node *nodes;
	uint32_t *parents;

	if (tree->nr >= TREE_NONE)
		return -ENOMEM;
	nodes = array_grow(tree->nodes, &tree->room, tree->nr + 1, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	tree->nodes = nodes;
	parents = array_grow(tree->parents, &tree->parents_room, tree->nr + 1, sizeof(*parents));
	if (!parents)
		return -ENOMEM;
	tree->parents = parents;
	nodes[tree->nr] = (struct tree_node){.label = label, .first = TREE_NONE, .next = TREE_NONE};
	parents[tree->nr] = parent;
	tree->nr++;
	return 0;
}

int tree_new(struct tree **out)
{
	struct tree *tree = calloc(1, sizeof(*tree));

	*out = NULL;
	if (!tree || append(tree, TREE_NONE, 0)) {
		tree_free(tree);
		return -ENOMEM;
	}
	*out = tree;
	return 0;
}

static bool same_child(const void *things, uint32_t number, const void *arg)
{
	const struct tree *tree = things;
	const struct child_key *key = arg;

	return tree->parents[number] == key->parent && tree->nodes[number].label == key->label;
}

/* Find the child of @parent with this label, or make it. */
static int child_of(struct tree *tree, uint32_t parent, uint32_t label, uint32_t *child)
{
	struct child_key key = {.parent = parent, .label = label};
	struct hash_query query = {
		.hash = hash_word(parent, label),
		.things = tree,
		.key = &key,
		.equal = same_child,
	};

	if (hash_index_find(&tree->children, &query, child))
		return 0;
	if (append(tree, parent, label))
		return -ENOMEM;
	*child = (uint32_t)(tree->nr - 1);
	if (hash_index_add(&tree->children, query.hash, *child))
		return -ENOMEM;
	tree->nodes[*child].next = tree->nodes[parent].first;
	tree->nodes[parent].first = *child;
	return 0;
}

int tree_add(struct tree *tree, const uint32_t *path, size_t nr, uint64_t bytes, uint64_t blocks)
{
	uint32_t at = 0;

	for (size_t i = 0; i < nr; i++) {
		int err = child_of(tree, at, path[i], &at);

		if (err)
			return err;
		tree->nodes[at].bytes += bytes;
		tree->nodes[at].blocks += blocks;
	}
	return 0;
}

int tree_mark(struct tree *tree, const uint32_t *path, size_t nr, uint64_t suspects)
{
	uint32_t at = 0;

	for (size_t i = 0; suspects && i < nr; i++) {
		int err = child_of(tree, at, path[i], &at);

		if (err)
			return err;
		tree->nodes[at].suspects += suspects;
	}
	return 0;
}

struct sorting {
	const struct tree *tree;
	const struct labels *labels;
};

static int compare(const void *a, const void *b, void *arg)
{
	const struct sorting *sorting = arg;
	const struct tree_node *x = &sorting->tree->nodes[*(const uint32_t *)a];
	const struct tree_node *y = &sorting->tree->nodes[*(const uint32_t *)b];
	const struct label *x_label, *y_label;
	int order;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->blocks != y->blocks)
		return x->blocks > y->blocks ? -1 : 1;
	x_label = labels_get(sorting->labels, x->label);
	y_label = labels_get(sorting->labels, y->label);
	order = strcmp(x_label->name, y_label->name);
	return order ? order : strcmp(x_label->location, y_label->location);
}

/* Order the children of @parent; @children has room for all nodes. */
static void sort_children(struct tree *tree, uint32_t parent, uint32_t *children,
			  struct sorting *sorting)
{
	struct tree_node *nodes = tree->nodes;
	size_t nr = 0;

	for (uint32_t at = nodes[parent].first; at != TREE_NONE; at = nodes[at].next)
		children[nr++] = at;
	if (nr < 2)
		return;
	qsort_r(children, nr, sizeof(*children), compare, sorting);
	nodes[parent].first = children[0];
	for (size_t i = 0; i < nr; i++)
		nodes[children[i]].next = i + 1 < nr ? children[i + 1] : TREE_NONE;
}

int tree_sort(struct tree *tree, const struct labels *labels)
{
	struct sorting sorting = {.tree = tree, .labels = labels};
	uint32_t *children = calloc(tree->nr, sizeof(*children));

	if (!children)
		return -ENOMEM;
	for (size_t i = 0; i < tree->nr; i++)
		sort_children(tree, (uint32_t)i, children, &sorting);
	free(children);
	return 0;
}

uint32_t tree_first(const struct tree *tree)
{
	return tree->nodes[0].first;
}

const struct tree_node *tree_node(const struct tree *tree, uint32_t number)
{
	return &tree->nodes[number];
}

void tree_free(struct tree *tree)
{
	if (!tree)
		return;
	free(tree->nodes);
	free(tree->parents);
	hash_index_release(&tree->children);
	free(tree);
}
