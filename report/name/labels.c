/* labels.c - see labels.h */
#include "report/name/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"
#include "report/base/strings.h"
#include "report/base/text.h"

#define DELETED " (deleted)" /* what the kernel appends to the path of such a file */

struct labels {
	struct label *all;
	size_t nr, room;
	struct hash_index index;
	struct strings *modules; /* paths */
};

int labels_new(struct labels **out)
{
	struct labels *labels = calloc(1, sizeof(*labels));

	*out = NULL;
	if (!labels || strings_new(&labels->modules)) {
		labels_free(labels);
		return -ENOMEM;
	}
	*out = labels;
	return 0;
}

int labels_module(struct labels *labels, const char *path, uint32_t *module)
{
	char *text = text_escape(path);
	size_t len = text ? strlen(text) : 0, end = strlen(DELETED);
	int err = -ENOMEM;

	if (len > end && !strcmp(text + len - end, DELETED))
		text[len - end] = '\0';
	if (text)
		err = strings_intern(labels->modules, text, module);
	free(text);
	return err;
}

const char *labels_path(const struct labels *labels, uint32_t module)
{
	return strings_all(labels->modules)[module];
}

static bool same_label(const void *things, uint32_t number, const void *key)
{
	const struct label *a = &((const struct labels *)things)->all[number];
	const struct label *b = key;

	return a->module == b->module && !strcmp(a->name, b->name) &&
	       !strcmp(a->location, b->location);
}

/* On success the strings of @label belong to @labels. */
static int append(struct labels *labels, const struct label *label, uint64_t hash)
{
	struct label *all;

	if (labels->nr >= UINT32_MAX)
		return -ENOMEM;
	all = array_grow(labels->all, &labels->room, labels->nr + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	labels->all = all;
	if (hash_index_add(&labels->index, hash, (uint32_t)labels->nr))
		return -ENOMEM;
	labels->all[labels->nr++] = *label;
	return 0;
}

int labels_intern(struct labels *labels, uint32_t module, const char *name, const char *location,
		  uint32_t *number)
{
	struct label label = {
		.name = text_escape(name), .location = text_escape(location), .module = module};
	struct hash_query query = {.things = labels, .key = &label, .equal = same_label};
	int err = -ENOMEM;

	if (!label.name || !label.location)
		goto out;
	query.hash = hash_text(hash_text(module, label.name), label.location);
	err = 0;
	if (hash_index_find(&labels->index, &query, number))
		goto out;
	err = append(labels, &label, query.hash);
	if (err)
		goto out;
	*number = (uint32_t)(labels->nr - 1);
	return 0;
out:
	free(label.name);
	free(label.location);
	return err;
}

size_t labels_nr(const struct labels *labels)
{
	return labels->nr;
}

const struct label *labels_get(const struct labels *labels, uint32_t number)
{
	return &labels->all[number];
}

static bool same_name(const void *things, uint32_t number, const void *key)
{
	const struct label *a = &((const struct labels *)things)->all[number];

	return !strcmp(a->name, ((const struct label *)key)->name);
}

static bool same_function(const void *things, uint32_t number, const void *key)
{
	const struct label *a = &((const struct labels *)things)->all[number];

	return a->module == ((const struct label *)key)->module && same_name(things, number, key);
}

/* The label of @index that @query describes, or else @number, which is added to it, to *@first.
 * Returns 0 or -ENOMEM. */
static int find_first(struct hash_index *index, const struct hash_query *query, uint32_t number,
		      uint32_t *first)
{
	if (hash_index_find(index, query, first))
		return 0;
	*first = number;
	return hash_index_add(index, query->hash, number);
}

int labels_functions(const struct labels *labels, uint32_t *functions, bool *namesakes)
{
	struct hash_index names = {0}, all = {0};
	int err = 0;

	*namesakes = false;
	for (uint32_t i = 0; i < labels->nr && !err; i++) {
		const struct label *label = &labels->all[i];
		struct hash_query query = {
			.hash = hash_text(0, label->name),
			.things = labels,
			.key = label,
			.equal = same_name,
		};
		uint32_t first = i;

		err = find_first(&names, &query, i, &first);
		if (labels->all[first].module == label->module) {
			functions[i] = first;
			continue;
		}
		*namesakes = true;
		query.hash = hash_word(query.hash, label->module);
		query.equal = same_function;
		err = err ? err : find_first(&all, &query, i, &functions[i]);
	}
	hash_index_release(&names);
	hash_index_release(&all);
	return err;
}

void labels_free(struct labels *labels)
{
	if (!labels)
		return;
	for (size_t i = 0; i < labels->nr; i++) {
		free(labels->all[i].name);
		free(labels->all[i].location);
	}
	free(labels->all);
	hash_index_release(&labels->index);
	strings_free(labels->modules);
	free(labels);
}
