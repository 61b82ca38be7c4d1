/* missed.h - blocks whose way from a root no single pass has seen whole
 *
 * A pass misses a pointer that moves from memory that is still to be read to memory that was read
 * already, and all that is behind it.  The next pass misses other ones: so the words of several
 * passes may lead to a block that none of them reaches.  That takes no block for held that was lost
 * before: where it is written when it is still reachable, so is what it points to.
 */
#ifndef REPORT_REACH_MISSED_H
#define REPORT_REACH_MISSED_H

#include "report/reach/graph/reach_pass.h"

/* All zero is the beginning. */
struct missed {
	/* Words of earlier passes from blocks that seem lost to others that do, ascending: the
	 * number of a block above 32 bits, and what struct reach_graph has in to[]. */
	uint64_t *edges;
	size_t nr, room;
};

/* After reach_pass_judge() of @p: raise classes[i] of each block that is reached by way of blocks
 * that earlier passes have reached, or by their words.  @more: other passes follow.  Returns 0 or
 * -ENOMEM. */
int missed_find(struct missed *m, struct reach_pass *p, uint8_t *classes, bool more);

/* Forget all. */
void missed_release(struct missed *m);

#endif
