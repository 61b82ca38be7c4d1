/* origins.c - see origins.h */
#include "report/trace/origins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void release_one(struct origin *origin)
{
	free(origin->process);
	free(origin->cgroup);
	free(origin->cache);
	free(origin->flags);
}

int origins_note(struct origins *origins, const struct mlk_origin *origin)
{
	struct origin copy = {.number = origin->number,
			      .tgid = origin->tgid,
			      .order = origin->order,
			      .process = strdup(origin->process),
			      .cgroup = strdup(origin->cgroup),
			      .cache = strdup(origin->cache),
			      .flags = strdup(origin->flags)};
	uint32_t number;
	int added = -ENOMEM;

	if (copy.process && copy.cgroup && copy.cache && copy.flags)
		added = intern_pair(&origins->table, &copy, sizeof(copy), &number);
	if (added <= 0)
		release_one(&copy);
	return added < 0 ? added : 0;
}

const struct origin *origins_get(const struct origins *origins, uint32_t number)
{
	const uint32_t key[] = {number, 0};
	uint32_t at;

	return intern_find_pair(&origins->table, key, sizeof(*origins->all), &at)
		       ? &origins->all[at]
		       : NULL;
}

void origins_release(struct origins *origins)
{
	for (size_t i = 0; i < origins->nr; i++)
		release_one(&origins->all[i]);
	intern_release(&origins->table);
}
