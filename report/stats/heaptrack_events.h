/* heaptrack_events.h - what happens to blocks, as the lines of heaptrack's format, while a trace is
 * replayed
 *
 * The lines go to a temporary file: the names that precede them are known only at the end.  Memory:
 * some words for each distinct pair of size and stack.
 */
#ifndef REPORT_HEAPTRACK_EVENTS_H
#define REPORT_HEAPTRACK_EVENTS_H

#include <stdio.h>

#include "report/live/live.h"

struct heaptrack_events; /* opaque */

/* A kind of allocation: that many bytes, by that stack. */
struct heaptrack_kind {
	uint64_t size;
	uint32_t stack;
};

/* No lines yet; times are counted from @start_ns.  *@out is NULL on failure.  Returns 0, -ENOMEM,
 * or the -errno of tmpfile(3). */
int heaptrack_events_new(struct heaptrack_events **out, uint64_t start_ns);

/* For struct live_watch, with a struct heaptrack_events as its arg. */
void heaptrack_events_changed(void *events, const struct live_change *change);

/* The kinds that the lines name, by number, to *@kinds; valid until the next change.  Returns how
 * many there are. */
size_t heaptrack_events_kinds(const struct heaptrack_events *events,
			      const struct heaptrack_kind **kinds);

/* Copy the lines to @out, but those of stacks for which @steps, by number of stack, has 0, and one
 * for the time @end_ns.  Returns 0, or what went wrong since heaptrack_events_new(): -ENOMEM or
 * -EIO. */
int heaptrack_events_copy(struct heaptrack_events *events, FILE *out, const uint32_t *steps,
			  uint64_t end_ns);

/* Release @events; NULL is allowed. */
void heaptrack_events_free(struct heaptrack_events *events);

#endif
