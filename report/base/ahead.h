/* ahead.h - steps that a thread of its own makes some places ahead of the one that asks for them
 *
 * Each place is filled, in their order and by that thread, then prepared, in any order and by
 * whoever has nothing better to do, then taken, in their order and by the thread that asks.
 */
#ifndef REPORT_AHEAD_H
#define REPORT_AHEAD_H

#include <stddef.h>

#define AHEAD_PLACES 4

struct ahead; /* opaque */

/* What is done, with place 0 to AHEAD_PLACES - 1, each of which is one thread's at a time. */
struct ahead_steps {
	/* Returns 1, 0 if there is nothing more, or what ahead_next() is to return in the end. */
	int (*fill)(void *arg, size_t place);
	void (*prepare)(void *arg, size_t place); /* NULL: nothing is to be done */
	void *arg;				  /* borrowed */
};

/* Begin.  *@out is NULL on failure.  Returns 0, -ENOMEM or -EAGAIN. */
int ahead_new(struct ahead **out, const struct ahead_steps *steps);

/* The next *@place, the caller's until the next call.  Returns 1, 0 at the end, or the error that
 * fill() returned. */
int ahead_next(struct ahead *a, size_t *place);

/* End the thread; NULL is allowed. */
void ahead_free(struct ahead *a);

#endif
