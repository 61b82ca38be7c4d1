/* suspect_blocks.h - which outstanding blocks may have been freed: those that lived while frees
 * were lost
 */
#ifndef REPORT_SUSPECT_BLOCKS_H
#define REPORT_SUSPECT_BLOCKS_H

#include <stdbool.h>

#include "format/reader.h"
#include "report/live/block_map.h"

/*
 * What is known of the times in which frees were lost.  A block that is still outstanding lived
 * through all of them but those that ended before it was allocated, so only the last end counts.
 * All zero: nothing was lost.
 */
struct suspect_blocks {
	uint64_t heap_ns;      /* CLOCK_MONOTONIC; up to then frees of heap blocks were lost */
	uint64_t mapped_ns;    /* the same of what mmap gave out */
	uint64_t from_ns;      /* frees of either kind were lost from then on; 0: not known */
	bool any;	       /* such frees were lost */
	uint64_t stop_ns;      /* what was lost later does not matter; 0: all does */
	struct mlk_losses met; /* the latest figures taken in */
	uint64_t in_time[MLK_LOSS_NR]; /* of these: what was not lost too late to matter */
	bool chunks;		       /* chunks were lost, and not too late to matter */
};

/* Take in a LOSSES record of the trace, in their order. */
void suspect_blocks_read(struct suspect_blocks *s, const struct mlk_losses *losses);

/* All records were taken in; @c is the state of the whole trace.  Frees in damaged chunks are as
 * lost as others, and of a loss without a time nothing is certain. */
void suspect_blocks_finish(struct suspect_blocks *s, const struct mlk_condition *c);

/* The time in which frees were lost: from *@from_ns to *@to_ns, CLOCK_MONOTONIC.  False: none were,
 * or it is not known of all of them. */
bool suspect_blocks_times(const struct suspect_blocks *s, uint64_t *from_ns, uint64_t *to_ns);

/* May @block, which is outstanding at the end, have been freed? */
bool suspect_blocks_is(const struct suspect_blocks *s, const struct live_block *block);

#endif
