/* freed.h - memory that blocks were in which are free: what is left in it is read by nobody */
#ifndef REPORT_FREED_H
#define REPORT_FREED_H

#include "report/live/live.h"
#include "report/reach/graph/reach_pass.h"

struct freed; /* opaque: of one process */

/* *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int freed_new(struct freed **out);

/* A block was freed.  Returns 0 or -ENOMEM. */
int freed_add(struct freed *f, uint64_t start, uint64_t end);

/* One was allocated at @start. */
void freed_drop(struct freed *f, uint64_t start);

/* What is free of it all, less the @nr blocks of @blocks, which ascend: ascending areas in
 * *@areas, which the caller frees.  Returns 0 or -ENOMEM. */
int freed_areas(const struct freed *f, const struct reach_block *blocks, size_t nr,
		struct reach_area **areas, size_t *nr_areas);

/* NULL is allowed. */
void freed_free(struct freed *f);

#endif
