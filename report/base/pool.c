/* pool.c - see pool.h */
#include "report/base/pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK ((size_t)1 << 18) /* bytes, which malloc(3) gets from the kernel and gives back */

/* Lists are linked by the first word of what is in them. */
static void put_first(void **list, void *thing)
{
	memcpy(thing, list, sizeof(*list));
	*list = thing;
}

static void *take_first(void **list)
{
	void *thing = *list;

	if (thing)
		memcpy(list, thing, sizeof(*list));
	return thing;
}

static int add_chunk(struct pool *pool)
{
	char *chunk = malloc(CHUNK);

	if (!chunk)
		return -1;
	put_first(&pool->chunks, chunk);
	pool->at = chunk + 2 * POOL_UNIT;
	pool->left = CHUNK - 2 * POOL_UNIT;
	return 0;
}

void *pool_enlarge(struct pool *pool, void *thing, size_t had, size_t size)
{
	void *moved;

	assert(had <= size && size <= POOL_MOST && !(had % POOL_UNIT) && !(size % POOL_UNIT));
	moved = take_first(&pool->given_back[size / POOL_UNIT]);
	if (!moved) {
		if (pool->left < size && add_chunk(pool))
			return NULL;
		moved = pool->at;
		pool->at += size;
		pool->left -= size;
	}
	if (had) {
		memcpy(moved, thing, had);
		put_first(&pool->given_back[had / POOL_UNIT], thing);
	}
	return moved;
}

void pool_release(struct pool *pool)
{
	void *chunk;

	while ((chunk = take_first(&pool->chunks)) != NULL)
		free(chunk);
	*pool = (struct pool){0};
}
