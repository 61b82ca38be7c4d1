/* drop_raw.h - a trace without what its stacks were unwound from */
#ifndef REPORT_DROP_RAW_H
#define REPORT_DROP_RAW_H

#include "format/copy.h"
#include "report/replay/replay.h"

struct drop_raw; /* opaque: what is still to be written */

/* Which of a trace with this @meta is to be left out. */
enum mlk_copy_drops drop_raw_parts(const struct mlk_meta *meta);

/* Write to @copy, which is borrowed until drop_raw_free(), what becomes of @trace.  *@out is NULL
 * on failure.  Returns 0, -ENOMEM, or -errno of read(2). */
int drop_raw_new(struct drop_raw **out, struct mlk_copy *copy, struct mlk_reader *trace);

/* Write the events of @batch, the next of @leaks' trace, whose stacks are *@ids there; or keep them
 * for a larger chunk.  Returns 0 or an error of mlk_copy_summary(). */
int drop_raw_batch(struct drop_raw *drop, const struct replay *leaks, const struct batch *batch,
		   const uint32_t *ids);

/* Write what was kept, and the modules.  Returns as drop_raw_batch(). */
int drop_raw_finish(struct drop_raw *drop, const struct replay *leaks);

/* Release @drop; NULL is allowed. */
void drop_raw_free(struct drop_raw *drop);

#endif
