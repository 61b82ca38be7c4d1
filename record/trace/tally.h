/* tally.h - how many blocks were allocated and freed, as the report counts them
 *
 * The report knows every block.  For the same two numbers it is enough to know of the mappings, of
 * which a part may be unmapped, and of calls of realloc and mremap that may still fail.  Of blocks
 * from before the recording the frees count here: the report shows these apart.
 */
#ifndef RECORD_TALLY_H
#define RECORD_TALLY_H

#include "format/trace.h"

/* All zero: nothing happened yet. */
struct tally {
	uint64_t allocs; /* blocks; a mapping that is cut in two is one more */
	uint64_t frees; /* blocks; a realloc that moved or resized its block is one, one that failed
			   is not */
	void *ranges;	/* tsearch(3) trees: what is mapped */
	void *taken;	/* by threads that may get it back */
};

/* Take in the next event of the trace.  Returns 0 or -ENOMEM. */
int tally_note(struct tally *t, const struct mlk_event *event);

/* Release what @t holds; the numbers stay. */
void tally_release(struct tally *t);

#endif
