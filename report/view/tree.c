/* tree.c - see tree.h */
#include "report/view/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"
#include "report/base/strings.h"
#include "report/name/labels.h"
#include "report/name/short_name.h"

/* Find the child of @parent with this label, or make it.  Returns 1: it was made, 0 or -ENOMEM. */
static int intern_node(struct tree *tree, uint32_t parent, uint32_t label, uint32_t *number)
{
	const struct tree_node node = {
		.parent = parent,
		.label = label,
		.first = TREE_NONE,
		.next = TREE_NONE,
		.recent = TREE_NONE,
		.places = TREE_NONE,
	};

	return intern_pair(&tree->table, &node, sizeof(node), number);
}

int tree_new(struct tree **out)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	uint32_t root;

	*out = NULL;
	if (!tree || intern_node(tree, TREE_NONE, 0, &root) < 0) {
		tree_free(tree);
		return -ENOMEM;
	}
	*out = tree;
	return 0;
}

/* What @label is among the children of a node. */
static uint32_t label_of_node(const struct tree *tree, uint32_t label)
{
	return tree->by_function ? tree->functions.all[label] : label;
}

uint32_t tree_child(const struct tree *tree, uint32_t parent, uint32_t label)
{
	const uint32_t key[] = {parent, label_of_node(tree, label)};
	uint32_t child;

	return intern_find_pair(&tree->table, key, sizeof(*tree->all), &child) ? child : TREE_NONE;
}

/* Find the child of @parent with this label, or make it. */
static int child_of(struct tree *tree, uint32_t parent, uint32_t label, uint32_t *child)
{
	uint32_t recent = tree->all[parent].recent;
	int added;

	label = label_of_node(tree, label);
	if (recent != TREE_NONE && tree->all[recent].label == label) {
		*child = recent;
		return 0;
	}
	added = intern_node(tree, parent, label, child);
	if (added < 0)
		return added;
	if (added) {
		tree->all[*child].next = tree->all[parent].first;
		tree->all[parent].first = *child;
	}
	tree->all[parent].recent = *child;
	return 0;
}

/* Count @bytes for the place of @label at @node. */
static int add_place(struct tree *tree, uint32_t node, uint32_t label, uint64_t bytes)
{
	const struct tree_place new = {node, label, .next = tree->all[node].places};
	uint32_t place = new.next;
	int added = 0;

	/* most have one */
	if (place == TREE_NONE || tree->places.all[place].label != label)
		added = intern_pair(&tree->places.table, &new, sizeof(new), &place);
	if (added < 0)
		return added;
	if (added)
		tree->all[node].places = place;
	tree->places.all[place].bytes += bytes;
	return 0;
}

int tree_by_function(struct tree *tree, const struct labels *labels)
{
	tree->by_function = true;
	return label_functions_update(&tree->functions, labels);
}

#define MAX_REPEATED 8 /* places of a call and its repetitions that are told apart */

/* Add the places of @repeat to @node that are not that of its first label. */
static int add_repeated_places(struct tree *tree, uint32_t node, const struct tree_repeat *repeat,
			       uint64_t bytes)
{
	uint32_t seen[MAX_REPEATED];
	size_t nr = 0;
	int err = 0;

	for (size_t i = 0; i < repeat->nr && nr < MAX_REPEATED && !err; i++) {
		size_t at = 0;

		while (at < nr && seen[at] != repeat->labels[i])
			at++;
		if (at < nr)
			continue;
		if (nr)
			err = add_place(tree, node, repeat->labels[i], bytes);
		seen[nr++] = repeat->labels[i];
	}
	return err;
}

/* Note how often a call at @node is repeated. */
static int add_repeat(struct tree *tree, uint32_t number, const struct tree_repeat *repeat,
		      uint64_t bytes)
{
	struct tree_node *node = &tree->all[number];

	if (!node->least_times || node->least_times > repeat->times)
		node->least_times = repeat->times;
	if (node->most_times < repeat->times)
		node->most_times = repeat->times;
	return tree->by_function && repeat->nr > 1
		       ? add_repeated_places(tree, number, repeat, bytes)
		       : 0;
}

/* Add call @i of @stack to node @number. */
static int add_call(struct tree *tree, uint32_t number, const struct tree_stack *stack, size_t i)
{
	const uint32_t kind = stack->kind ? stack->kind : TREE_MIXED;
	struct tree_node *node = &tree->all[number];
	int err = 0;

	node->bytes += stack->bytes;
	node->blocks += stack->blocks;
	node->suspects += stack->suspects;
	node->kind = !node->kind || node->kind == kind ? kind : TREE_MIXED;
	if (tree->by_function)
		err = add_place(tree, number, stack->path[i], stack->bytes);
	if (!err && stack->repeats)
		err = add_repeat(tree, number, &stack->repeats[i], stack->bytes);
	return err;
}

int tree_add_stack(struct tree *tree, const struct tree_stack *stack)
{
	uint32_t at = TREE_ROOT;
	int err = 0;

	for (size_t i = 0; i < stack->nr && !err; i++) {
		err = child_of(tree, at, stack->path[i], &at);
		if (!err)
			err = add_call(tree, at, stack, i);
	}
	return err;
}

struct sorting {
	const struct tree *tree;
	const struct labels *labels;
};

static int compare_nodes(const void *a, const void *b, void *arg)
{
	const struct sorting *sorting = arg;
	const struct tree_node *x = &sorting->tree->all[*(const uint32_t *)a];
	const struct tree_node *y = &sorting->tree->all[*(const uint32_t *)b];
	const struct label *x_label, *y_label;
	int order;

	if (tree_weight(sorting->tree, x) != tree_weight(sorting->tree, y))
		return tree_weight(sorting->tree, x) > tree_weight(sorting->tree, y) ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->blocks != y->blocks)
		return x->blocks > y->blocks ? -1 : 1;
	x_label = &sorting->labels->all[x->label];
	y_label = &sorting->labels->all[y->label];
	order = strcmp(x_label->name, y_label->name);
	if (!order)
		order = strcmp(sorting->labels->modules->all[x_label->module],
			       sorting->labels->modules->all[y_label->module]);
	return order ? order : strcmp(x_label->location, y_label->location);
}

/* Order the children of @parent; @children has room for all nodes. */
static void sort_children(struct tree *tree, uint32_t parent, uint32_t *children,
			  struct sorting *sorting)
{
	struct tree_node *nodes = tree->all;
	size_t nr = 0;

	for (uint32_t at = nodes[parent].first; at != TREE_NONE; at = nodes[at].next)
		children[nr++] = at;
	if (nr < 2)
		return;
	qsort_r(children, nr, sizeof(*children), compare_nodes, sorting);
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

/* Write the children of @parent to @all, which has room for all nodes.  Returns how many. */
static size_t children_of(const struct tree *tree, const struct labels *labels, uint32_t parent,
			  struct namesake *all)
{
	size_t nr = 0;

	for (uint32_t at = tree->all[parent].first; at != TREE_NONE; at = tree->all[at].next) {
		const struct label *label = &labels->all[tree->all[at].label];

		all[nr++] = (struct namesake){
			.name = label->name,
			.module = labels->modules->all[label->module],
			.number = at,
		};
	}
	return nr;
}

int tree_tell_apart(struct tree *tree, const struct labels *labels)
{
	struct namesake *all;
	int err = label_functions_update(&tree->functions, labels);

	free(tree->told);
	tree->told = NULL;
	if (err || !tree->functions.namesakes)
		return err;
	tree->told = calloc(tree->nr, sizeof(*tree->told));
	all = calloc(tree->nr, sizeof(*all));
	if (!tree->told || !all) {
		free(all);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < tree->nr; i++) {
		size_t nr = children_of(tree, labels, i, all);

		disambiguate(all, nr);
		while (nr--)
			tree->told[all[nr].number] = all[nr].told;
	}
	free(all);
	return 0;
}

const char *tree_told(const struct tree *tree, uint32_t number)
{
	return tree->told ? tree->told[number] : NULL;
}

void tree_free(struct tree *tree)
{
	if (!tree)
		return;
	intern_release(&tree->table);
	free(tree->told);
	label_functions_release(&tree->functions);
	intern_release(&tree->places.table);
	free(tree);
}

int tree_names_new(struct tree_names **out, const struct tree *tree, const struct labels *labels)
{
	struct tree_names *names = calloc(1, sizeof(*names));
	int err = names ? strings_new(&names->texts) : -ENOMEM;

	*out = NULL;
	if (!err) {
		names->tree = tree;
		names->labels = labels;
		names->numbers = calloc(tree->nr, sizeof(*names->numbers));
		err = names->numbers ? 0 : -ENOMEM;
	}
	if (err)
		tree_names_free(names);
	else
		*out = names;
	return err;
}

static int add_node_name(struct tree_names *names, uint32_t node)
{
	uint32_t label = names->tree->all[node].label;
	const char *told = tree_told(names->tree, node);
	char *name = short_name(names->labels->all[label].name), *text = NULL;
	int err = -ENOMEM;

	if (name && asprintf(&text, told ? "%s [%s]" : "%s%s", name, told ? told : "") < 0)
		text = NULL;
	if (text)
		err = strings_intern(names->texts, text, &names->numbers[node]);
	free(name);
	free(text);
	return err;
}

int tree_names_add(struct tree_names *names, const uint32_t *path, size_t nr)
{
	uint32_t node = TREE_ROOT;
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		node = tree_child(names->tree, node, path[i]);
		if (!names->numbers[node])
			err = add_node_name(names, node);
	}
	return err;
}

void tree_names_print(const struct tree_names *names, struct json *json, const char *key)
{
	json_open(json, key, '[');
	for (size_t i = 0; i < names->texts->nr; i++)
		json_text(json, NULL, names->texts->all[i]);
	json_close(json, ']');
}

void tree_names_free(struct tree_names *names)
{
	if (!names)
		return;
	strings_free(names->texts);
	free(names->numbers);
	free(names);
}
