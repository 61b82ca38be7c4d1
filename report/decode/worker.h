/* worker.h - decode a chunk and unwind its stacks, unless the trace has them unwound, with nothing
 * that another thread uses */
#ifndef REPORT_WORKER_H
#define REPORT_WORKER_H

#include "report/decode/batch.h"
#include "report/trace/address_spaces.h"

struct worker; /* opaque: to be used by one thread at a time */

/* Of what, and how.  All is borrowed, and no thread may change it while a worker is at work. */
struct worker_opts {
	const struct mlk_reader *trace;
	const struct dwunw *dw;		     /* has the modules */
	const struct address_spaces *spaces; /* prepared for it */
	const struct trace_modules *images;  /* the modules of the trace */
	uint64_t stop_ns; /* what happened later than this is left out; CLOCK_MONOTONIC */
	const struct mlk_reader *cache; /* which has stacks of batches that say so; or NULL */
	bool keep; /* encode what a cache needs of each batch; then nothing is left out */
};

/* *@out is NULL on failure.  Returns 0, -ENOMEM or -errno of fcntl(2). */
int worker_new(struct worker **out, const struct worker_opts *opts);

/* Read batch->chunk into @batch, which is empty: with the stacks of batch->unwound, if there is one
 * and it is about that chunk; those of the cache must be.  What went wrong is in batch->err. */
void worker_read(struct worker *worker, struct batch *batch);

/* Release @worker; NULL is allowed. */
void worker_free(struct worker *worker);

#endif
