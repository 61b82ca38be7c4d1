/* reach_pass.h - what one pass through a process's memory says of its blocks */
#ifndef REPORT_REACH_PASS_H
#define REPORT_REACH_PASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/reach.h"
#include "report/reach/block_index.h"

/* How well a block can be reached, ascending. */
enum reach_class {
	REACH_LOST,	/* no word points to it but from lost blocks */
	REACH_STALE,	/* only words do that nothing reads any more */
	REACH_POSSIBLE, /* by way of a word that points into a block and not to its beginning */
	REACH_HELD,	/* from a root by words that point to beginnings */
	REACH_CLASSES
};

/* Memory that is no block: [start, end). */
struct reach_area {
	uint64_t start, end;
};

/* What is known before the words are read; all is borrowed. */
struct reach_world {
	const struct block_index *index;
	const struct reach_area *freed; /* ascending, not overlapping: its words are stale */
	size_t nr_freed;
	bool starts_only;  /* a word that points into a block does not reach it */
	uint64_t tag_mask; /* bits of a word that are no part of its address */
};

struct reach_pass; /* opaque */

/* Begin a pass; @pass, whose lists are borrowed, tells of threads and ranges.  On failure *@out is
 * NULL.  Returns 0 or -ENOMEM. */
int reach_pass_new(struct reach_pass **out, const struct reach_world *world,
		   const struct mlk_pass *pass);

/* Take in its words.  Returns 0, -ENOMEM, or -EINVAL: they do not ascend. */
int reach_pass_words(struct reach_pass *p, const struct mlk_pointer *words, size_t nr);

/* All words are in: raise classes[i] of each block to what this pass says, if that is more.
 * Returns 0 or -ENOMEM. */
int reach_pass_judge(struct reach_pass *p, uint8_t *classes);

/* After that: pointed[i] becomes true of each block of class REACH_LOST to which a word of another
 * one points. */
void reach_pass_lost_with(const struct reach_pass *p, const uint8_t *classes, bool *pointed);

/* Forget it; NULL is allowed. */
void reach_pass_free(struct reach_pass *p);

#endif
