/* stack_cache.c - see stack_cache.h */
#include "report/cache/stack_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "report/base/memory.h"
#include "report/cache/cache_file.h"

#define RESULTS_SHARE 4 /* part of the memory that is allowed which results may take */
#define RESULTS_LEVEL 1 /* of zstd, as for the stacks: what is kept takes little time */

/* Each thread needs some MiB to make a cache: a report that may have little is not to fail by it.
 */
#define LEAST_MEMORY ((uint64_t)256 << 20)

struct stack_cache {
	char *path; /* of the trace */
	bool always, refused;
	struct cache_file file;
	struct mlk_reader *reader;   /* of the cache that is used; NULL: none is */
	const struct mlk_entry *own; /* its chunks with results */
	size_t nr_own;
	bool has_growth;	  /* and these tell of it */
	bool without_results;	  /* they are not to be read, nor to be replaced */
	bool leaves;		  /* stack_cache_refuse() is to refuse only them */
	struct mlk_cache_key key; /* of the trace */
	bool complete;		  /* it has all stacks, or needs none */
	bool writes;
	int write_err;	     /* why it could not be written; 0: it could */
	uint64_t nr_written; /* chunks */
	size_t nr_chunks;    /* of events whose stacks it has; 0: the trace has them itself */
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

	/* what is kept says nothing of the origins of the kernel's blocks */
	if (meta->of_kernel || !source->of->nr_chunks)
		return false;
	/* pieces that are missing are told, and may be different ones with the next report */
	if (!source->intact || mlk_reader_is_growing(source->trace))
		return false;
	return cache->always || source->of->events >= STACK_CACHE_LEAST;
}

/* Are there stacks in the trace that were unwound? */
static bool has_stacks(const struct stack_cache_source *source)
{
	return source->of->unwound || mlk_reader_meta(source->trace)->dropped;
}

/* Is @entry of the program's own, and of the same type as @first? */
static bool is_own(const struct mlk_entry *entry, const struct mlk_entry *first)
{
	return entry->type >= MLK_CACHE_OWN && entry->type < MLK_CACHE_OWN + MLK_CACHE_OWN_NR &&
	       entry->type == first->type;
}

/* Has the cache a chunk for each of the trace, and behind these only the program's own, *@nr in
 * all? */
static bool is_complete(struct mlk_reader *reader, size_t nr_chunks,
			const struct mlk_entry **entries, size_t *nr)
{
	bool complete = !mlk_reader_list(reader, entries, nr) && *nr >= nr_chunks;

	for (size_t i = 0; complete && i < *nr; i++)
		complete = i < nr_chunks ? (*entries)[i].records == MLK_RECORD_UNWOUND
					 : is_own(&(*entries)[i], &(*entries)[nr_chunks]);
	return complete;
}

/* Open the cache, if there is one of the trace: cache->reader, or NULL. */
static void open_cache(struct stack_cache *cache)
{
	const struct mlk_entry *entries;
	struct mlk_cache_key found;
	int fd = cache_file_open(&cache->file);
	size_t nr;

	if (fd < 0 || mlk_cache_open(&cache->reader, fd, &found))
		return;
	if (!cache->refused && !memcmp(&found, &cache->key, sizeof(found)) &&
	    is_complete(cache->reader, cache->nr_chunks, &entries, &nr)) {
		cache->own = entries + cache->nr_chunks;
		cache->nr_own = nr - cache->nr_chunks;
		cache->has_growth = cache->nr_own && cache->own->type != MLK_CACHE_OWN;
		return;
	}
	mlk_reader_free(cache->reader);
	cache->reader = NULL;
}

static void use_cache(struct stack_cache *cache, struct worker_pool_opts *opts)
{
	open_cache(cache);
	if (!cache->reader || !cache->nr_chunks)
		return;
	opts->cached = cache->own - cache->nr_chunks;
	opts->nr_cached = cache->nr_chunks;
	opts->worker.cache = cache->reader;
	cache->complete = true;
}

/* Would the kernel end the process when it writes that much, or is memory short? */
static bool is_limited(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur != RLIM_INFINITY ||
	       (memory_allowed() && memory_allowed() < LEAST_MEMORY);
}

bool stack_cache_can_be_made(const char *path, const struct mlk_reader *trace)
{
	struct cache_file file = CACHE_FILE_NONE;
	bool can = !is_limited() && !cache_file_find(&file, trace, path);
	int fd = can ? cache_file_open(&file) : -1; /* the one that would be replaced */

	if (fd >= 0)
		close(fd);
	can = can && !cache_file_create(&file);
	cache_file_release(&file);
	return can;
}

static void make_cache(struct stack_cache *cache, const struct stack_cache_source *source,
		       struct worker_pool_opts *opts)
{
	if (!source->whole || is_limited())
		return;
	cache->write_err = cache_file_create(&cache->file);
	if (cache->write_err)
		return;
	cache->write_err = mlk_cache_begin(cache->file.place.fd, source->trace, &cache->key);
	cache->writes = !cache->write_err;
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
	cache->nr_own = 0;
	cache->complete = false;
	cache->file.old = (struct stat){0};
	give_up(cache);
}

void stack_cache_begin(struct stack_cache *cache, const struct stack_cache_source *source,
		       struct worker_pool_opts *opts)
{
	struct mlk_header header = mlk_reader_header(source->trace);

	forget_all(cache);
	if (!is_cacheable(cache, source) ||
	    (!cache->file.path && cache_file_find(&cache->file, source->trace, cache->path)))
		return;
	cache->key = cache_key_of(&header, source->of, source->images, source->dw);
	cache->nr_chunks = has_stacks(source) ? 0 : source->of->nr_chunks;
	use_cache(cache, opts);
	if (!cache->nr_chunks)
		cache->complete = source->whole;
	else if (!cache->reader)
		make_cache(cache, source, opts);
}

void stack_cache_add(struct stack_cache *cache, struct batch *batch)
{
	if (!cache->writes || !(batch->chunk.records & MLK_RECORD_EVENT))
		return;
	if (batch->kept.ready)
		cache->write_err =
			mlk_cache_append(cache->file.place.fd, cache->nr_written, &batch->kept);
	if (!batch->kept.ready || cache->write_err)
		give_up(cache);
	else
		cache->nr_written++;
}

void stack_cache_end(struct stack_cache *cache, bool damaged)
{
	if (!cache->writes)
		return;
	cache->writes = false;
	if (damaged || cache->nr_written != cache->nr_chunks) {
		cache_file_drop(&cache->file);
		return;
	}
	cache->write_err = cache_file_commit(&cache->file);
	cache->complete = !cache->write_err;
}

bool stack_cache_has_results(const struct stack_cache *cache, bool growth)
{
	/* they are in memory twice for a moment, beside what they are made to */
	const uint64_t bytes = (uint64_t)cache->nr_own * MLK_CACHE_PIECE;

	return cache->nr_own && !cache->without_results && (cache->has_growth || !growth) &&
	       (!memory_allowed() || bytes <= memory_allowed() / RESULTS_SHARE);
}

int stack_cache_results(const struct stack_cache *cache, struct save *to)
{
	int err = 0;

	for (size_t i = 0; !err && i < cache->nr_own; i++) {
		const uint8_t *bytes;
		size_t len;

		err = mlk_cache_get_own(cache->reader, &cache->own[i], &bytes, &len);
		if (!err)
			save_put(to, bytes, len);
	}
	return err ? err : to->failed ? -ENOMEM : 0;
}

bool stack_cache_wants_results(const struct stack_cache *cache, bool growth)
{
	return cache->complete && !cache->without_results && !is_limited() &&
	       (!cache->nr_own || (growth && !cache->has_growth));
}

/* Write the cache of @trace once more into the file that was created, with @results behind its
 * stacks. */
static int write_results(const struct stack_cache *cache, const struct mlk_reader *trace,
			 const struct save *results, bool growth)
{
	const int fd = cache->file.place.fd;
	struct mlk_cache_encoder *encoder;
	int err = mlk_cache_encoder_new(&encoder, RESULTS_LEVEL);

	if (!err && cache->reader)
		err = mlk_cache_copy(fd, cache->reader,
				     cache->nr_own ? cache->own->offset
						   : mlk_reader_size(cache->reader));
	else if (!err)
		err = mlk_cache_begin(fd, trace, &cache->key);
	if (!err)
		err = mlk_cache_put_own(fd, encoder, trace, cache->nr_chunks, growth,
					results->bytes, results->len);
	mlk_cache_encoder_free(encoder);
	return err;
}

bool stack_cache_open_results(struct stack_cache *cache, bool growth)
{
	/* another report may have replaced it meanwhile */
	forget_all(cache);
	open_cache(cache);
	if (cache->nr_chunks && !cache->reader)
		return false;
	cache->complete = true;
	return stack_cache_wants_results(cache, growth) && !cache_file_create(&cache->file);
}

void stack_cache_keep_results(struct stack_cache *cache, const struct mlk_reader *trace,
			      const struct save *results, bool growth)
{
	cache->write_err = results->failed ? -ENOMEM : write_results(cache, trace, results, growth);
	if (cache->write_err)
		cache_file_drop(&cache->file);
	else
		cache->write_err = cache_file_commit(&cache->file);
}

int stack_cache_write_error(const struct stack_cache *cache)
{
	return cache->write_err;
}

void stack_cache_leave_results(struct stack_cache *cache)
{
	cache->without_results = cache->leaves = true;
}

void stack_cache_refuse(struct stack_cache *cache)
{
	mlk_reader_free(cache->reader);
	cache->reader = NULL;
	cache->refused |= !cache->leaves;
	cache->leaves = false;
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
