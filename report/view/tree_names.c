/* tree_names.c - see tree_names.h */
#include "report/view/tree_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/base/strings.h"

struct tree_names {
	const struct tree *tree;
	const struct labels *labels;
	struct strings *texts;
	uint32_t *numbers; /* by node; 0: it has none yet */
};

int tree_names_new(struct tree_names **out, const struct tree *tree, const struct labels *labels)
{
	struct tree_names *names = calloc(1, sizeof(*names));
	int err = names ? strings_new(&names->texts) : -ENOMEM;

	*out = NULL;
	if (!err) {
		names->tree = tree;
		names->labels = labels;
		names->numbers = calloc(tree_nr(tree), sizeof(*names->numbers));
		err = names->numbers ? 0 : -ENOMEM;
	}
	if (err)
		tree_names_free(names);
	else
		*out = names;
	return err;
}

static int add_node(struct tree_names *names, uint32_t node)
{
	uint32_t label = tree_node(names->tree, node)->label;
	const char *told = tree_told(names->tree, node);
	const char *name = labels_get(names->labels, label)->name;
	char *text;
	int err;

	if (!told)
		return strings_intern(names->texts, name, &names->numbers[node]);
	if (asprintf(&text, "%s [%s]", name, told) < 0)
		return -ENOMEM;
	err = strings_intern(names->texts, text, &names->numbers[node]);
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
			err = add_node(names, node);
	}
	return err;
}

uint32_t tree_names_of(const struct tree_names *names, uint32_t node)
{
	return names->numbers[node];
}

void tree_names_print(const struct tree_names *names, struct json *json, const char *key)
{
	json_open(json, key, '[');
	for (size_t i = 0; i < strings_nr(names->texts); i++)
		json_text(json, NULL, strings_all(names->texts)[i]);
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
