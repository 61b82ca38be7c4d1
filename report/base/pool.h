/* pool.h - memory for many small things that are released together: without a call for each */
#ifndef REPORT_POOL_H
#define REPORT_POOL_H

#include <stddef.h>

#define POOL_UNIT 8	/* bytes of which sizes are multiples */
#define POOL_MOST 2048u /* bytes of a thing */

/* All zero is empty. */
struct pool {
	void *chunks; /* the last one first; each begins with a pointer to the next */
	char *at;     /* the first byte of the last one that was not given */
	size_t left;  /* bytes from there on */
	void *given_back[POOL_MOST / POOL_UNIT + 1]; /* by size; each begins with the next */
};

/* Room for @size bytes, into which the @had bytes at @thing, which came from here, have moved; @had
 * is 0 for a new thing, and not above @size.  Both are multiples of POOL_UNIT up to POOL_MOST.
 * Valid until pool_release().  NULL: no memory, and @thing is as before. */
void *pool_enlarge(struct pool *pool, void *thing, size_t had, size_t size);

/* Release all that came from @pool, and leave it empty. */
void pool_release(struct pool *pool);

#endif
