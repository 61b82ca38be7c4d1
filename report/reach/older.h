/* older.h - blocks that nobody saw allocated, as a walk through the allocator's memory found them
 */
#ifndef REPORT_OLDER_H
#define REPORT_OLDER_H

#include <stdbool.h>

#include "format/reader.h"
#include "report/reach/graph/freed.h"
#include "report/reach/graph/reach_pass.h"

/* What the walk found of a block that was recorded. */
struct older_known {
	uint64_t address, time_ns; /* of its allocation */
	uint64_t size, first;	   /* as of a mlk_heap_block */
};

/* A walk.  All zero: there is none. */
struct older {
	struct mlk_heap_block *blocks; /* ascending */
	size_t nr, room;
	struct older_known *known; /* ascending */
	size_t nr_known, room_known;
	struct reach_area *arenas; /* where the allocator has its lists; ascending */
	size_t nr_arenas;
	char allocator[64]; /* its name; "": it is not known */
	uint64_t unwalked;  /* bytes */
	bool whole;	    /* all of it was read */
};

/* Read that of @snapshot of process @tgid.  To be released in any case; one that is not whole has
 * no blocks.  Returns 0, -ENOMEM or -errno of read(2). */
int older_read(struct older *older, struct mlk_reader *trace, uint32_t tgid, uint32_t snapshot);

/* Keep of the blocks in use those that none of the @nr of @recorded, sorted by their beginnings,
 * reaches into, nor what is in @freed; the others are free, known, or younger.  Free ones go to
 * @freed.  Returns 0 or -ENOMEM. */
int older_keep(struct older *older, const struct reach_block *recorded, size_t nr,
	       struct freed *freed);

/* Forget it. */
void older_release(struct older *older);

#endif
