/* keep_raw.h - a trace with all that it had, and what its stacks were unwound to */
#ifndef REPORT_KEEP_RAW_H
#define REPORT_KEEP_RAW_H

#include "format/copy.h"
#include "report/replay/replay.h"

struct keep_raw; /* opaque */

/* Write to @copy, which is borrowed until keep_raw_free().  *@out is NULL on failure.  Returns 0 or
 * -ENOMEM. */
int keep_raw_new(struct keep_raw **out, struct mlk_copy *copy);

/* Write the stacks of @batch, the events of the next chunk of @leaks' trace, where they are *@ids;
 * none if it has none.  Returns 0 or an error of mlk_copy_unwound(). */
int keep_raw_batch(struct keep_raw *keep, const struct replay *leaks, const struct batch *batch,
		   const uint32_t *ids);

/* Release @keep; NULL is allowed. */
void keep_raw_free(struct keep_raw *keep);

#endif
