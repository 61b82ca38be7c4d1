/* heap.h - the blocks of a process's allocator, found from outside while it runs
 *
 * The memory is walked through at least twice, as the program changes it meanwhile.  What was in
 * use each time, did not change and was in no list of free blocks in between is a block that nobody
 * gave back.  A block that is lost cannot change, as nobody knows where it is.
 */
#ifndef RECORD_HEAP_H
#define RECORD_HEAP_H

#include "format/heap.h"
#include "format/reach.h"
#include "record/target/maps.h"

struct heap; /* opaque; for one thread at a time */

/* Where to look; all is borrowed for the call. */
struct heap_place {
	int mem, pagemap;		/* /proc/PID/mem and pagemap, open for reading */
	const struct mlk_range *ranges; /* its writable memory, as of reach_ranges() */
	size_t nr;
	const struct maps *maps;  /* all of its memory */
	const _Atomic bool *stop; /* end early; NULL: never */
	uint64_t *slept_ns;	  /* added to: what was slept by its own will; NULL: not wanted */
};

/* Begin.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int heap_begin(struct heap **out);

/* Walk once more.  Returns 0, also if the allocator is not known; -ENOMEM, -E2BIG: there are too
 * many blocks; or -ECANCELED. */
int heap_walk(struct heap *h, const struct heap_place *place);

/* Look only at what is free now, several times within some milliseconds.  Returns as heap_walk().
 */
int heap_look_at_free(struct heap *h, const struct heap_place *place);

/* What came of all of it: the allocator, sums and arenas in *@heap, with no blocks in it; these in
 * *@blocks, ascending, *@nr of them, to be freed by the caller.  What @heap points to is valid as
 * long as @h.  Returns 0 or -ENOMEM. */
int heap_result(struct heap *h, const struct maps *maps, struct mlk_heap *heap,
		struct mlk_heap_block **blocks, size_t *nr);

/* NULL is allowed. */
void heap_end(struct heap *h);

#endif
