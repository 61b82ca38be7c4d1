/* worker_pool.h - threads that read a trace's events, ahead of who takes them in their order
 *
 * Chunks are decoded and unwound each for itself, by as many workers; the batches come out in the
 * order of the file.  What comes out does not depend on how many threads there are.
 *
 * Memory: for each thread its unwinder, and three chunks of events.
 */
#ifndef REPORT_CREW_H
#define REPORT_CREW_H

#include "report/decode/batch.h"
#include "report/trace/address_spaces.h"

struct crew; /* opaque */

/* The most threads that are of use. */
#define CREW_MAX 64

struct crew_opts {
	struct mlk_reader *trace; /* borrowed until crew_free(), as the others; not to be used by
				     the caller but for what does not move it */
	struct dwunw *dw;	  /* has the modules; is given all stacks */
	const struct spaces *spaces;
	const struct images *images;
	uint64_t stop_ns;	 /* see worker.h */
	bool anew;		 /* unwind also what the trace has unwound */
	unsigned int nr_threads; /* 1 to CREW_MAX; 1: the caller's own */
};

/* As many threads as CPUs may be used, at most CREW_MAX. */
unsigned int crew_default(void);

/* Begin to read.  *@out is NULL on failure.  Returns 0, -ENOMEM or -errno of a system call. */
int crew_new(struct crew **out, const struct crew_opts *opts);

/* The events of the next chunk.  Of an ALLOC, *@ids by its stack is the stack's id in opts->dw.
 * Both are valid until the next call.  Returns 1, 0 at the end, -ENOMEM or -errno of read(2). */
int crew_next(struct crew *crew, const struct batch **batch, const uint32_t **ids);

/* The state of the trace, as far as it was read: complete after crew_next() returned 0. */
const struct mlk_condition *crew_condition(const struct crew *crew);

/* End the threads, and release @crew; NULL is allowed. */
void crew_free(struct crew *crew);

#endif
