/* named_spaces.c - see named_spaces.h */
#include "report/trace/named_spaces.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "report/base/array.h"

static bool is_space(const struct named_space *at, uint32_t base, uint32_t tgid, size_t epoch)
{
	return at->base == base && at->tgid == tgid && at->epoch == epoch;
}

struct space *named_spaces_find(struct named_spaces *named, uint32_t base, uint32_t tgid,
				size_t epoch)
{
	if (named->nr && is_space(&named->all[named->last], base, tgid, epoch))
		return named->all[named->last].space;
	for (size_t i = 0; i < named->nr; i++)
		if (is_space(&named->all[i], base, tgid, epoch)) {
			named->last = i;
			return named->all[i].space;
		}
	return NULL;
}

int named_spaces_add(struct named_spaces *named, const struct named_space *key,
		     const struct dwunw_mapping *maps, struct dwunw *dw, size_t most)
{
	struct named_space add = *key;
	int err;

	if (named->nr_mappings + add.nr_maps > most)
		named_spaces_release(named);
	add.space = calloc(1, sizeof(*add.space));
	if (!add.space)
		return -ENOMEM;
	err = dwunw_space_new(&add.space->modules, dw, maps, add.nr_maps);
	if (!err)
		err = array_append(&named->all, &named->nr, &named->room, &add, sizeof(add));
	if (err) {
		dwunw_space_free(add.space->modules);
		free(add.space);
		return err;
	}
	named->last = named->nr - 1;
	named->nr_mappings += add.nr_maps;
	return 0;
}

void named_spaces_release(struct named_spaces *named)
{
	for (size_t i = 0; i < named->nr; i++) {
		dwunw_space_free(named->all[i].space->modules);
		free(named->all[i].space);
	}
	free(named->all);
	*named = (struct named_spaces){0};
}
