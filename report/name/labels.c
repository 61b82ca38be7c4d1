/* labels.c - see labels.h */
#include "report/name/labels.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"
#include "report/base/strings.h"
#include "report/base/text.h"

#define DELETED " (deleted)" /* what the kernel appends to the path of such a file */

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

static bool same_label(const void *things, uint32_t number, const void *key)
{
	const struct label *a = &((const struct labels *)things)->all[number];
	const struct label *b = key;

	return a->module == b->module && !strcmp(a->name, b->name) &&
	       !strcmp(a->location, b->location);
}

int labels_intern(struct labels *labels, uint32_t module, const char *name, const char *location,
		  uint32_t *number)
{
	struct label label = {
		.name = text_escape(name), .location = text_escape(location), .module = module};
	struct hash_query query = {.things = labels, .key = &label, .equal = same_label};
	int added = -ENOMEM;

	if (label.name && label.location) {
		query.hash = hash_text(hash_text(module, label.name), label.location);
		added = intern(&labels->table, &query, &label, sizeof(label), number);
	}
	if (added > 0)
		return 0;
	free(label.name);
	free(label.location);
	return added;
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

/* The first label that has the name and module of label @number to *@first. */
static int find_function(struct label_functions *functions, const struct labels *labels,
			 uint32_t number, uint32_t *first)
{
	const struct label *label = &labels->all[number];
	struct hash_query query = {
		.hash = hash_text(0, label->name),
		.things = labels,
		.key = label,
		.equal = same_name,
	};
	int err = find_first(&functions->names, &query, number, first);

	if (err || labels->all[*first].module == label->module)
		return err;
	functions->namesakes = true;
	query.hash = hash_word(query.hash, label->module);
	query.equal = same_function;
	return find_first(&functions->functions, &query, number, first);
}

int label_functions_update(struct label_functions *functions, const struct labels *labels)
{
	int err =
		array_cover(&functions->all, &functions->room, labels->nr, sizeof(*functions->all));

	for (; functions->nr < labels->nr && !err; functions->nr++)
		err = find_function(functions, labels, (uint32_t)functions->nr,
				    &functions->all[functions->nr]);
	return err;
}

void label_functions_release(struct label_functions *functions)
{
	free(functions->all);
	hash_index_release(&functions->names);
	hash_index_release(&functions->functions);
	*functions = (struct label_functions){0};
}

void labels_free(struct labels *labels)
{
	if (!labels)
		return;
	for (size_t i = 0; i < labels->nr; i++) {
		free(labels->all[i].name);
		free(labels->all[i].location);
	}
	intern_release(&labels->table);
	strings_free(labels->modules);
	free(labels);
}

static int compare_namesakes(const void *a, const void *b)
{
	const struct namesake *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (!order)
		order = strcmp(text_file_name(x->module), text_file_name(y->module));
	return order ? order : strcmp(x->module, y->module);
}

static bool same_base(const struct namesake *a, const struct namesake *b)
{
	return !strcmp(text_file_name(a->module), text_file_name(b->module));
}

/* The same for @nr of one name, whose modules differ. */
static void tell_namesakes(struct namesake *all, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		bool by_path = (i && same_base(&all[i - 1], &all[i])) ||
			       (i + 1 < nr && same_base(&all[i], &all[i + 1]));

		all[i].told = nr < 2 || !all[i].module[0] ? NULL
			      : by_path			  ? all[i].module
							  : text_file_name(all[i].module);
	}
}

void disambiguate(struct namesake *all, size_t nr)
{
	size_t first = 0;

	if (nr)
		qsort(all, nr, sizeof(*all), compare_namesakes);
	for (size_t i = 1; i <= nr; i++) {
		if (i < nr && !strcmp(all[i].name, all[first].name))
			continue;
		tell_namesakes(all + first, i - first);
		first = i;
	}
}
