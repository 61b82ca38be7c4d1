/* stack_cache.h - the cache of a trace's stacks: read in place of unwinding, or made by the way;
 * and of the results of a replay, in place of that
 *
 * A cache is no result: that it cannot be read, or written, changes nothing but the time that the
 * next report takes.
 */
#ifndef REPORT_STACK_CACHE_H
#define REPORT_STACK_CACHE_H

#include "report/base/save.h"
#include "report/cache/cache_key.h"
#include "report/decode/worker_pool.h"

struct stack_cache; /* opaque: of one trace */

/* Could a cache of @trace, the file @path, be made, as limits and its folder are now? */
bool stack_cache_can_be_made(const char *path, const struct mlk_reader *trace);

/* A report of fewer events takes a fifth of a second or so: nobody waits for that, and folders are
 * not to fill with files of no use. */
#define STACK_CACHE_LEAST 500000

/* Of the trace in the file @path; a cache of it is made if that pays, or with @always for each
 * trace.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int stack_cache_new(struct stack_cache **out, const char *path, bool always);

/* What is known of the trace when it is about to be unwound; all is borrowed for the call. */
struct stack_cache_source {
	struct mlk_reader *trace;
	const struct cache_trace *of;
	const struct trace_modules *images; /* loaded, */
	const struct dwunw *dw;		    /* by this */
	bool intact; /* the recording was ended, and nothing of it is damaged */
	bool whole;  /* it is going to be replayed to its end */
};

/* Have @opts use the cache, if there is one that is of the trace as it is now and of what unwinds
 * it; or else have it keep what a new one takes, if there is to be one.  @cache must outlive the
 * workers. */
void stack_cache_begin(struct stack_cache *cache, const struct stack_cache_source *source,
		       struct worker_pool_opts *opts);

/* Take in what the next batch of the trace has for the cache that is made, if one is. */
void stack_cache_add(struct stack_cache *cache, struct batch *batch);

/* All batches came: give the new cache its name, unless one of them was missing or @damaged. */
void stack_cache_end(struct stack_cache *cache, bool damaged);

/* Has the cache that is used results of a replay, and with @growth also what that told of growth?
 * False, too, where they would take too much of the memory that is allowed. */
bool stack_cache_has_results(const struct stack_cache *cache, bool growth);

/* Append them to @to.  Returns 0, -ENOMEM, -errno of read(2) or MLK_E_CORRUPT. */
int stack_cache_results(const struct stack_cache *cache, struct save *to);

/* May the cache of the trace have results, and has none, or with @growth none that tell of it? */
bool stack_cache_wants_results(const struct stack_cache *cache, bool growth);

/* Begin to write the cache anew, with such results.  Returns whether it could be: then
 * stack_cache_keep_results() is to follow. */
bool stack_cache_open_results(struct stack_cache *cache, bool growth);

/* Have the cache of @trace contain @results from now on, unless these failed. */
void stack_cache_keep_results(struct stack_cache *cache, const struct mlk_reader *trace,
			      const struct save *results, bool growth);

/* Why the cache could not be written, or not all of it: as mlk_place_take(); 0: it could, or there
 * was no need. */
int stack_cache_write_error(const struct stack_cache *cache);

/* Before stack_cache_refuse(): it is only the results that are of no use here; they stay. */
void stack_cache_leave_results(struct stack_cache *cache);

/* The cache that was read is not of the trace after all: it is not read again, and a new one may
 * take its place. */
void stack_cache_refuse(struct stack_cache *cache);

/* Release @cache, and what was written of one that has not got its name; NULL is allowed. */
void stack_cache_free(struct stack_cache *cache);

#endif
