/* worker_pool.h - threads that read a trace's events, ahead of the thread that takes them in their
 * order
 *
 * Chunks are decoded and unwound each for itself, by as many workers; the batches come out in the
 * order of the file.  What comes out does not depend on how many threads there are.
 *
 * Memory: for each thread its unwinder, and three chunks of events.  Those of a trace without stack
 * bytes are large: for them a share of what memory_limit() allowed is taken, with fewer threads.
 */
#ifndef REPORT_WORKER_POOL_H
#define REPORT_WORKER_POOL_H

#include "report/decode/worker.h"

struct worker_pool; /* opaque */

/* The most threads that are of use. */
#define WORKER_POOL_MAX 64

/* Of what, and how: for worker_pool_new(). */
struct worker_pool_opts {
	struct mlk_reader *trace;  /* borrowed until worker_pool_free(), as the others; not to be
				      used by the caller except for what does not move it */
	struct dwunw *dw;	   /* has the modules; is given all stacks */
	struct worker_opts worker; /* of the same trace and modules */
	bool anew;		   /* unwind also what the trace has unwound */
	/* The chunks of worker.cache, one for each chunk of events; borrowed. */
	const struct mlk_entry *cached;
	size_t nr_cached;
	unsigned int nr_threads; /* 1 to WORKER_POOL_MAX; 1: the caller's own */
};

/* As many threads as CPUs may be used, at most WORKER_POOL_MAX. */
unsigned int worker_pool_default(void);

/* Begin to read.  *@out is NULL on failure.  Returns 0, -ENOMEM or -errno of a system call. */
int worker_pool_new(struct worker_pool **out, const struct worker_pool_opts *opts);

/* The events of the next chunk.  Of an ALLOC, *@ids by its stack is the stack's id in opts->dw.
 * Both are valid until the next call.  Returns 1, 0 at the end, -ENOMEM, -errno of read(2),
 * or MLK_E_CACHE: the cache is not of the trace, which is to be read without it. */
int worker_pool_next(struct worker_pool *pool, struct batch **batch, const uint32_t **ids);

/* The state of the trace, as far as it was read: complete after worker_pool_next() returned 0. */
const struct mlk_condition *worker_pool_condition(const struct worker_pool *pool);

/* End the threads, and release @pool; NULL is allowed. */
void worker_pool_free(struct worker_pool *pool);

#endif
