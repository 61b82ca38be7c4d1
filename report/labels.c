/* labels.c - see labels.h */
#include "report/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/array.h"
#include "report/hash_index.h"
#include "report/text.h"

struct labels {
	struct label *all;
	size_t nr, room;
	struct hash_index index;
};

int labels_new(struct labels **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static bool same_label(const void *things, uint32_t number, const void *key)
{
	const struct label *a = &((const struct labels *)things)->all[number];
	const struct label *b = key;

	return !strcmp(a->name, b->name) && !strcmp(a->location, b->location);
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

int labels_intern(struct labels *labels, const char *name, const char *location, uint32_t *number)
{
	struct label label = {.name = text_escape(name), .location = text_escape(location)};
	struct hash_query query = {.things = labels, .key = &label, .equal = same_label};
	int err = -ENOMEM;

	if (!label.name || !label.location)
		goto out;
	query.hash = hash_text(hash_text(0, label.name), label.location);
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
	free(labels);
}
