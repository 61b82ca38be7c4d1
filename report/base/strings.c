/* strings.c - see strings.h */
#include "report/base/strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"

struct strings {
	char **all;
	size_t nr, room;
	struct hash_index index;
};

int strings_new(struct strings **out)
{
	uint32_t empty;
	int err;

	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	err = strings_intern(*out, "", &empty);
	if (err) {
		strings_free(*out);
		*out = NULL;
	}
	return err;
}

static bool same_string(const void *things, uint32_t number, const void *key)
{
	return !strcmp(((const struct strings *)things)->all[number], key);
}

int strings_intern(struct strings *strings, const char *text, uint32_t *number)
{
	struct hash_query query = {
		.hash = hash_text(0, text), .things = strings, .key = text, .equal = same_string};
	char **all, *copy;

	if (hash_index_find(&strings->index, &query, number))
		return 0;
	if (strings->nr >= UINT32_MAX)
		return -ENOMEM;
	all = array_grow(strings->all, &strings->room, strings->nr + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	strings->all = all;
	copy = strdup(text);
	if (!copy || hash_index_add(&strings->index, query.hash, (uint32_t)strings->nr)) {
		free(copy);
		return -ENOMEM;
	}
	*number = (uint32_t)strings->nr;
	all[strings->nr++] = copy;
	return 0;
}

size_t strings_nr(const struct strings *strings)
{
	return strings->nr;
}

char *const *strings_all(const struct strings *strings)
{
	return strings->all;
}

void strings_free(struct strings *strings)
{
	if (!strings)
		return;
	for (size_t i = 0; i < strings->nr; i++)
		free(strings->all[i]);
	free(strings->all);
	hash_index_release(&strings->index);
	free(strings);
}
