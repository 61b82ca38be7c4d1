/* alloc_threads.h - which threads allocated the outstanding blocks of each stack */
#ifndef REPORT_ALLOC_THREADS_H
#define REPORT_ALLOC_THREADS_H

#include <stdio.h>

#include "report/replay/replay.h"

/* What is outstanding of what one thread got by one stack. */
struct taker {
	uint32_t stack; /* its number */
	uint32_t tgid, tid;
	struct live_amount amount; /* of a sampled trace, an estimate */
};

struct alloc_threads; /* opaque: of all stacks of a report */

/* The takers of the chosen blocks of @leaks, which is borrowed until alloc_threads_free().  *@out
 * is NULL on failure.  Returns 0 or -ENOMEM. */
int alloc_threads_new(struct alloc_threads **out, const struct replay *leaks);

/* Those of stack @number, the one with the most bytes first, and of the same the one with the
 * lower tid.  *@nr is how many there are.  Valid until alloc_threads_free(). */
const struct taker *alloc_threads_of(const struct alloc_threads *takers, uint32_t number,
				     size_t *nr);

/* The name of its thread as it was recorded (any bytes), "" when not known; valid until
 * replay_free(). */
const char *alloc_threads_name(const struct alloc_threads *takers, const struct taker *taker);

/* Print which threads allocated the outstanding blocks of stack @number, as ", by thread 1234
 * worker" or ", by 3 threads, most by 1234 worker (17 blocks)", without an end of line; nothing
 * when nothing is.  Errors are left in @out for ferror(). */
void alloc_threads_print(FILE *out, const struct alloc_threads *takers, uint32_t number);

/* Release @takers; NULL is allowed. */
void alloc_threads_free(struct alloc_threads *takers);

#endif
