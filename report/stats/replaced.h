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
#define REPLACED_SLICES	 32 /* of the time, as growth.h has them */

/* Blocks of one stack in one class of sizes. */
struct replaced_pair {
	uint32_t stack, class;
	uint64_t paired;	   /* frees of older blocks next to allocations of it */
	uint64_t unsized;	   /* the same of such whose size is not known */
	struct live_amount amount; /* outstanding */
};

/* What is outstanding of a stack in the place of older blocks; and of its bytes, so many in the
 * place of blocks that were freed in each slice of the time.  Of the rest that is not known. */
struct replaced_credit {
	struct live_amount amount;
	uint64_t others; /* outstanding blocks of which that is not said */
	float then[REPLACED_SLICES];
};

/* Blocks by the slice in which they were freed. */
struct replaced_times {
	uint32_t then[REPLACED_SLICES];
	uint64_t blocks; /* all */
};

/* All of a trace; all zero is nothing. */
struct replaced {
	INTERN_OF(struct replaced_pair);
	struct replaced_times older[REPLACED_CLASSES], unsized; /* of unsized: those in pairs */
	uint64_t left[REPLACED_CLASSES]; /* of older: not given to a stack yet */
	struct replaced_credit *credit;	 /* by stack, after replaced_finish() */
	size_t nr_credit;
	uint64_t unsized_left;	     /* older blocks without a size that were given to no stack */
	uint64_t start_ns, width_ns; /* of the slices */
	bool failed;
};

/* For LIVE_OLDER, which happens in this @slice. */
void replaced_changed(struct replaced *replaced, const struct live_change *change, size_t slice);

/* The slices are twice as wide from now on. */
void replaced_widen(struct replaced *replaced);

/* All changes were seen.  @turnover says of each of @nr_stacks stacks which share of its blocks was
 * freed at a great age.  @unsized is how many older blocks were freed beside those of which @live
 * tells, as a sample leaves them out.  start_ns and width_ns are to be set.  Returns 0 or -ENOMEM.
 */
int replaced_finish(struct replaced *replaced, const struct live *live, const struct chosen *chosen,
		    const double *turnover, size_t nr_stacks, uint64_t unsized);

/* After replaced_finish(): what is outstanding of @stack in the place of older blocks. */
struct replaced_credit replaced_of(const struct replaced *replaced, uint32_t stack);

/* Release what @replaced holds, and leave it empty. */
void replaced_release(struct replaced *replaced);

#endif
