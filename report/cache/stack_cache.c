/* stack_cache.c - see stack_cache.h */
#include "report/cache/stack_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "report/base/memory.h"
#include "report/cache/cache_file.h"

/* A report of fewer events takes a fifth of a second or so: nobody waits for that, and folders are
 * not to fill with files of no use. */
#define LEAST_EVENTS 500000

/* Each thread needs some MiB to make a cache: a report that may have little is not to fail by it.
 */
#define LEAST_MEMORY ((uint64_t)256 << 20)

struct stack_cache {
	char *path; /* of the trace */
	bool always, refused;
	struct cache_file file;
	struct mlk_reader *reader; /* of the cache that is used; NULL: none is */
	bool writes;
	uint64_t nr_written; /* chunks */
	size_t nr_chunks;    /* of events that the trace has */
};

int stack_cache_new(struct stack_cache **out, const char *path, bool always)
{
	struct stack_cache *cache = *out = calloc(1, sizeof(*cache));

	if (!cache)
		return -ENOMEM;
	cache->file = (struct cache_file)CACHE_FILE_NONE;
	cache->always = always;
	cache->path = strdup(path);
	if (cache->path)
		return 0;
	stack_cache_free(cache);
	*out = NULL;
	return -ENOMEM;
}

/* Could there be a cache of the trace? */
static bool is_cacheable(const struct stack_cache *cache, const struct stack_cache_source *source)
{
	const struct mlk_meta *meta = mlk_reader_meta(source->trace);

	/* what has its stacks, or says nothing of them to the cache */
	if (source->of->unwound || meta->dropped || meta->of_kernel || !source->of->nr_chunks)
		return false;
	/* pieces that are missing are told, and may be different ones with the next report */
	if (!source->intact || mlk_reader_is_growing(source->trace))
		return false;
	return cache->always || source->of->events >= LEAST_EVENTS;
}

/* Has the cache a chunk for each of the trace? */
static bool is_complete(struct mlk_reader *reader, size_t nr_chunks,
			const struct mlk_entry **entries)
{
	size_t nr;
	bool complete = !mlk_reader_list(reader, entries, &nr) && nr == nr_chunks;

	for (size_t i = 0; complete && i < nr; i++)
		complete = (*entries)[i].records == MLK_RECORD_UNWOUND;
	return complete;
}

static void use_cache(struct stack_cache *cache, const struct mlk_cache_key *key,
		      struct worker_pool_opts *opts)
{
	int fd = cache_file_open(&cache->file);
	struct mlk_cache_key found;

	if (fd < 0 || mlk_cache_open(&cache->reader, fd, &found))
		return;
	if (!cache->refused && !memcmp(&found, key, sizeof(found)) &&
	    is_complete(cache->reader, cache->nr_chunks, &opts->cached)) {
		opts->nr_cached = cache->nr_chunks;
		opts->worker.cache = cache->reader;
		return;
	}
	mlk_reader_free(cache->reader);
	cache->reader = NULL;
}

/* Would the kernel end the process when it writes that much? */
static bool is_limited(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur != RLIM_INFINITY;
}

static void make_cache(struct stack_cache *cache, const struct stack_cache_source *source,
		       const struct mlk_cache_key *key, struct worker_pool_opts *opts)
{
	if (!source->whole || is_limited() || (memory_allowed() && memory_allowed() < LEAST_MEMORY))
		return;
	if (cache_file_create(&cache->file))
		return;
	cache->writes = !mlk_cache_begin(cache->file.place.fd, source->trace, key);
	cache->nr_written = 0;
	opts->worker.keep = cache->writes;
}

static void give_up(struct stack_cache *cache)
{
	cache->writes = false;
	cache_file_drop(&cache->file);
}

/* A replay may begin again, where memory was short. */
static void forget_all(struct stack_cache *cache)
{
	mlk_reader_free(cache->reader);
	cache->reader = NULL;
	cache->file.old = (struct stat){0};
	give_up(cache);
}

void stack_cache_begin(struct stack_cache *cache, const struct stack_cache_source *source,
		       struct worker_pool_opts *opts)
{
	struct mlk_header header = mlk_reader_header(source->trace);
	struct mlk_cache_key key;

	forget_all(cache);
	if (!is_cacheable(cache, source) ||
	    (!cache->file.path && cache_file_find(&cache->file, source->trace, cache->path)))
		return;
	key = cache_key_of(&header, source->of, source->images, source->dw);
	cache->nr_chunks = source->of->nr_chunks;
	use_cache(cache, &key, opts);
	if (!cache->reader)
		make_cache(cache, source, &key, opts);
}

void stack_cache_add(struct stack_cache *cache, struct batch *batch)
{
	if (!cache->writes || !(batch->chunk.records & MLK_RECORD_EVENT))
		return;
	if (!batch->kept.ready ||
	    mlk_cache_append(cache->file.place.fd, cache->nr_written, &batch->kept))
		give_up(cache);
	else
		cache->nr_written++;
}

void stack_cache_end(struct stack_cache *cache, bool damaged)
{
	if (!cache->writes)
		return;
	cache->writes = false;
	if (damaged || cache->nr_written != cache->nr_chunks)
		cache_file_drop(&cache->file);
	else
		(void)cache_file_commit(&cache->file);
}

void stack_cache_refuse(struct stack_cache *cache)
{
	mlk_reader_free(cache->reader);
	cache->reader = NULL;
	cache->refused = true;
}

void stack_cache_free(struct stack_cache *cache)
{
	if (!cache)
		return;
	mlk_reader_free(cache->reader);
	cache_file_release(&cache->file);
	free(cache->path);
	free(cache);
}
