/* growth.h - how much was outstanding of each stack over time, and how long its blocks lived
 *
 * Time is divided into equal slices, at most GROWTH_SLICES of them: when they do not suffice any
 * more, two become one.  So memory does not depend on the length of a trace.
 */
#ifndef REPORT_GROWTH_H
#define REPORT_GROWTH_H

#include "report/live/live.h"

struct growth; /* opaque */

#define GROWTH_SLICES 32

/* What is known of one stack. */
struct growth_stack {
	uint64_t bytes[GROWTH_SLICES]; /* outstanding at the end of each slice */
	uint64_t most[GROWTH_SLICES];  /* most that was outstanding within it */
	bool has_lifetime;	       /* blocks of it were freed */
	uint64_t lifetime_ns; /* so long at most half of these lived; rounded up to 2^n us, so at
			       * most twice the true one */
};

/* Nothing happened yet; time is counted from the first change.  *@out is NULL on failure.
 * Returns 0 or -ENOMEM. */
int growth_new(struct growth **out);

/* For struct live_watch, with a struct growth as its arg. */
void growth_changed(void *growth, const struct live_change *change);

/* The replay ended at @end_ns.  Returns 0, or -ENOMEM when memory was short before. */
int growth_finish(struct growth *growth, uint64_t end_ns);

/* After growth_finish(): when the first slice begins (CLOCK_MONOTONIC), slices that there are, at
 * least one, and nanoseconds of each; the last one may be cut. */
uint64_t growth_start_ns(const struct growth *growth);
size_t growth_slices(const struct growth *growth);
uint64_t growth_width_ns(const struct growth *growth);

/* After growth_finish(): what is known of stack @number; all zero if nothing. */
struct growth_stack growth_of(const struct growth *growth, uint32_t number);

/* After growth_finish(): the same of all stacks together, without a lifetime.  What was most of all
 * of them was there at one moment; the sum of what was most of each need not have been. */
struct growth_stack growth_of_all(const struct growth *growth);

/* Release @growth; NULL is allowed. */
void growth_free(struct growth *growth);

#endif
