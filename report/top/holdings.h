/* holdings.h - what each thread holds from each stack at a moment: groups are sums of it, and the
 * stacks of a group are parts of it
 */
#ifndef REPORT_HOLDINGS_H
#define REPORT_HOLDINGS_H

#include "report/base/hash_index.h"
#include "report/live/live.h"

/* Who holds: a thread; of the kernel's blocks, tgid is an origin's number, and tid 0. */
struct holder_thread {
	uint32_t tgid, tid;
};

/* What a thread, by its number, holds from a stack, by its number. */
struct holding {
	uint32_t thread, stack;
	struct live_amount now;
	uint64_t born_us; /* sum over its blocks: allocated so long after the start */
};

/* All of a moment; all zero: none was looked at. */
struct holdings {
	struct {
		INTERN_OF(struct holder_thread);
	} threads;
	struct {
		INTERN_OF(struct holding);
	} cells;
	uint64_t time_ns, start_ns; /* CLOCK_MONOTONIC */
	uint64_t known_ns;	    /* up to when all events are in it; the caller sets it */
	bool of_kernel;
	bool failed; /* memory was short */
};

/* Sum up what is outstanding in @live at @time_ns, in place of what @holdings had; the recording
 * began at @start_ns.  Returns 0 or -ENOMEM. */
int holdings_fill(struct holdings *holdings, const struct live *live, bool of_kernel,
		  uint64_t start_ns, uint64_t time_ns);

/* How old @amount is on average at the moment of @holdings, by its sum of times, in nanoseconds. */
uint64_t holdings_age(const struct holdings *holdings, struct live_amount amount, uint64_t born_us);

/* Release what @holdings has. */
void holdings_release(struct holdings *holdings);

#endif
