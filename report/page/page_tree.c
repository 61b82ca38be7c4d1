/* page_tree.c - see page_tree.h */
#include "report/page/page_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/array.h"

int page_tree_init(struct page_tree *tree, const struct labels *labels)
{
	uint32_t none;
	int err;

	*tree = (struct page_tree){.labels = labels};
	err = tree_new(&tree->tree);
	if (!err)
		err = strings_new(&tree->files);
	/* line 0 of no file */
	if (!err && intern_pair(&tree->lines.table, &(struct page_line){0},
				sizeof(struct page_line), &none) < 0)
		err = -ENOMEM;
	return err;
}

int page_tree_line(struct page_tree *tree, const struct place *place, uint32_t *number)
{
	struct page_line line = {0, place->inlined};
	int err = 0;

	if (place->file[0] && place->line && place->line <= UINT32_MAX / 2) {
		line.line |= place->line << 1;
		err = strings_intern(tree->files, place->file, &line.file);
	}
	if (!err && intern_pair(&tree->lines.table, &line, sizeof(line), number) < 0)
		err = -ENOMEM;
	return err;
}

int page_tree_path(struct page_tree *tree, struct page_path *path, const struct places *places,
		   const uint32_t *steps, size_t nr, const uint32_t *numbers, uint32_t root)
{
	int err = 0;

	path->nr = 0;
	if (root != TREE_NONE) {
		path->labels[0] = root;
		path->times[0] = 1;
		path->lines[path->nr++] = 0;
	}
	for (; nr && path->nr < VIEW_MAX_PATH && !err; path->nr++) {
		path->times[path->nr] = 1;
		path->labels[path->nr] = numbers[steps[--nr]];
		err = page_tree_line(tree, &places->all[steps[nr]], &path->lines[path->nr]);
	}
	return err;
}

static void note_times(struct page_times *times, uint32_t now)
{
	if (!times->most || now < times->least)
		times->least = now;
	if (now > times->most)
		times->most = now;
}

int page_tree_add(struct page_tree *tree, const struct page_path *path)
{
	uint32_t node = TREE_ROOT;
	int err = tree_add(tree->tree, path->labels, path->nr, 0, 0);

	if (!err)
		err = array_cover(&tree->line_of, &tree->room, tree->tree->nr,
				  sizeof(*tree->line_of));
	if (!err)
		err = array_cover(&tree->times, &tree->times_room, tree->tree->nr,
				  sizeof(*tree->times));
	for (size_t i = 0; i < path->nr && !err; i++) {
		node = tree_child(tree->tree, node, path->labels[i]);
		if (!tree->line_of[node])
			tree->line_of[node] = path->lines[i];
		note_times(&tree->times[node], path->times[i]);
	}
	return err;
}

bool page_tree_is_full(const struct page_tree *tree)
{
	return tree->tree->nr > PAGE_MAX_NODES;
}

/* The next node of a walk through all: children before siblings.  *@up is by how many levels it is
 * above a child of @node. */
static uint32_t next_node(const struct tree *tree, uint32_t node, uint64_t *up)
{
	*up = 0;
	if (tree->all[node].first != TREE_NONE)
		return tree->all[node].first;
	for (*up = 1; node != TREE_ROOT; node = tree->all[node].parent, ++*up)
		if (tree->all[node].next != TREE_NONE)
			return tree->all[node].next;
	return TREE_NONE;
}

int page_tree_name(struct page_tree *tree)
{
	uint32_t number = 0;
	uint64_t up;
	int err = tree_tell_apart(tree->tree, tree->labels);

	if (!err)
		err = tree_names_new(&tree->names, tree->tree, tree->labels);
	if (err)
		return err;
	tree->numbers = calloc(tree->tree->nr, sizeof(*tree->numbers));
	if (!tree->numbers)
		return -ENOMEM;
	for (uint32_t node = TREE_ROOT; node != TREE_NONE; node = next_node(tree->tree, node, &up))
		tree->numbers[node] = number++;
	return 0;
}

int page_tree_name_path(struct page_tree *tree, const struct page_path *path)
{
	return tree_names_add(tree->names, path->labels, path->nr);
}

void page_tree_pack(const struct page_tree *tree, const struct page_path *path, struct pack *pack)
{
	uint32_t nodes[VIEW_MAX_PATH], node = TREE_ROOT;
	uint64_t others = 0;

	for (size_t i = 0; i < path->nr; i++) {
		node = tree_child(tree->tree, node, path->labels[i]);
		nodes[i] = node;
		others += tree->line_of[node] != path->lines[i];
	}
	pack_number(pack, tree->numbers[node]);
	pack_number(pack, others);
	for (size_t i = path->nr; i-- && others;)
		if (tree->line_of[nodes[i]] != path->lines[i]) {
			pack_number(pack, path->nr - 1 - i);
			pack_number(pack, path->lines[i]);
			others--;
		}
}

/* A name is a text, and the module that it is of. */
struct page_name {
	uint32_t text, module;
};

struct names {
	INTERN_OF(struct page_name);
};

static int pack_nodes(const struct page_tree *tree, struct names *names, struct pack *pack)
{
	const struct tree *nodes = tree->tree;
	uint64_t up;

	for (uint32_t node = next_node(nodes, TREE_ROOT, &up); node != TREE_NONE;
	     node = next_node(nodes, node, &up)) {
		struct page_name name = {tree->names->numbers[node],
					 tree->labels->all[nodes->all[node].label].module};
		uint32_t number;

		if (intern_pair(&names->table, &name, sizeof(name), &number) < 0)
			return -ENOMEM;
		pack_number(pack, up);
		pack_number(pack, number);
		pack_number(pack, tree->line_of[node]);
	}
	return 0;
}

/* Nodes that are repeated: their numbers, and how often at least and at most. */
static int put_repeats(const struct page_tree *tree, struct json *json)
{
	struct pack pack;
	int err = pack_open(&pack);

	for (uint32_t node = 1; node < tree->tree->nr && !err; node++) {
		if (tree->times[node].most < 2)
			continue;
		pack_number(&pack, tree->numbers[node]);
		pack_number(&pack, tree->times[node].least);
		pack_number(&pack, tree->times[node].most);
	}
	return err ? err : pack_close(&pack, json, "repeats");
}

static void put_strings(struct json *json, const char *key, const struct strings *strings)
{
	json_open(json, key, '[');
	for (size_t i = 0; i < strings->nr; i++)
		json_text(json, NULL, strings->all[i]);
	json_close(json, ']');
}

/* Write @nr pairs of numbers as member @key.  Returns 0 or -ENOMEM. */
static int put_pairs(struct json *json, const char *key, const uint32_t (*pairs)[2], size_t nr)
{
	struct pack pack;
	int err = pack_open(&pack);

	for (size_t i = 0; i < nr && !err; i++) {
		pack_number(&pack, pairs[i][0]);
		pack_number(&pack, pairs[i][1]);
	}
	return err ? err : pack_close(&pack, json, key);
}

int page_tree_put(const struct page_tree *tree, struct json *json)
{
	struct names names = {0};
	struct pack nodes;
	int err = pack_open(&nodes);

	tree_names_print(tree->names, json, "texts");
	put_strings(json, "modules", tree->labels->modules);
	put_strings(json, "files", tree->files);
	if (!err)
		err = pack_nodes(tree, &names, &nodes);
	if (!err)
		err = put_pairs(json, "names", (const uint32_t(*)[2])names.all, names.nr);
	if (!err)
		err = put_pairs(json, "lines", (const uint32_t(*)[2])tree->lines.all,
				tree->lines.nr);
	if (!err)
		err = put_repeats(tree, json);
	if (!err)
		err = pack_close(&nodes, json, "nodes");
	else
		pack_close(&nodes, NULL, NULL);
	intern_release(&names.table);
	return err;
}

void page_tree_release(struct page_tree *tree)
{
	tree_names_free(tree->names);
	tree_free(tree->tree);
	strings_free(tree->files);
	intern_release(&tree->lines.table);
	free(tree->line_of);
	free(tree->times);
	free(tree->numbers);
	*tree = (struct page_tree){0};
}
