/* replaced.h - whose blocks are in the place of older ones, which were freed while it was recorded
 *
 * A free has no stack, so it is not known who would have freed what.  Frees of older blocks are
 * counted by class of size, as live.h knows it.  They are due to stacks whose blocks have that
 * class: first to those that free their own blocks, too, then to those whose allocations are next
 * to such frees in their thread.  A stack with neither gets none: it may leak.
 */
#ifndef REPORT_REPLACED_H
#define REPORT_REPLACED_H

#include "report/base/hash_index.h"
#include "report/live/block_filter.h"
#include "report/live/sampling.h"

#define REPLACED_CLASSES 256

/* Blocks of one stack in one class of sizes. */
struct replaced_pair {
	uint32_t stack, class;
	uint64_t paired;	   /* frees of older blocks next to allocations of it */
	uint64_t unsized;	   /* the same of such whose size is not known */
	struct live_amount amount; /* outstanding */
};

/* All of a trace; all zero is nothing. */
struct replaced {
	INTERN_OF(struct replaced_pair);
	uint64_t older[REPLACED_CLASSES]; /* blocks freed */
	struct live_amount *credit;	  /* by stack, after replaced_finish() */
	size_t nr_credit;
	bool failed;
};

/* For LIVE_OLDER. */
void replaced_changed(struct replaced *replaced, const struct live_change *change);

/* All changes were seen.  @turnover says of each of @nr_stacks stacks which share of its blocks was
 * freed at a great age.  @unsized is how many older blocks were freed beside those of which @live
 * tells, as a sample leaves them out.  Returns 0 or -ENOMEM. */
int replaced_finish(struct replaced *replaced, const struct live *live, const struct chosen *chosen,
		    const double *turnover, size_t nr_stacks, uint64_t unsized);

/* After replaced_finish(): what is outstanding of @stack in the place of older blocks. */
struct live_amount replaced_of(const struct replaced *replaced, uint32_t stack);

/* Release what @replaced holds, and leave it empty. */
void replaced_release(struct replaced *replaced);

#endif
