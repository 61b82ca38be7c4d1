/* memory_walker.h - read what takes the kernel a walk through all pages, in a thread of its own
 *
 * The walk takes long, and before it begins the process may hold the lock of its mappings for as
 * long as it likes.  Who takes in events must not wait for either.
 */
#ifndef RECORD_MEMORY_WALKER_H
#define RECORD_MEMORY_WALKER_H

#include <stdbool.h>
#include <stdint.h>

#include "format/trace.h"

struct memory_walker; /* opaque; its functions are for one thread */

/* What came of a walk. */
struct memory_walk {
	struct mlk_memory sample; /* what is known by it, and when it was over; without a tgid */
	uint64_t took_ns;	  /* time of a processor; without that of waiting */
};

/* Start the thread, which gives up all privileges.  *@out is released with memory_walker_free().
 * Returns 0 or -errno. */
int memory_walker_new(struct memory_walker **out);

/* Have it read @fd, of memory_open_pages(), which it closes.  What was asked before was taken. */
void memory_walker_ask(struct memory_walker *w, int fd);

/* Is what was asked last read?  If it is not, wait for that, but no longer than @wait_ns. */
bool memory_walker_take(struct memory_walker *w, uint64_t wait_ns, struct memory_walk *walk);

/* Release @w without waiting: a thread that reads ends when it has read.  NULL is allowed. */
void memory_walker_free(struct memory_walker *w);

#endif
