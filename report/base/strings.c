/* strings.c - see strings.h */
#include "report/base/strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/hash_index.h"

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
	char *copy;
	int added;

	if (hash_index_find(&strings->index, &query, number))
		return 0;
	copy = strdup(text);
	added = copy ? intern(&strings->table, &query, &copy, sizeof(copy), number) : -ENOMEM;
	if (added < 0)
		free(copy);
	return added < 0 ? added : 0;
}

void strings_free(struct strings *strings)
{
	if (!strings)
		return;
	for (size_t i = 0; i < strings->nr; i++)
		free(strings->all[i]);
	intern_release(&strings->table);
	free(strings);
}
