/* stored_stacks.h - stacks that were unwound, from an unwinder into a trace and back */
#ifndef REPORT_STORED_STACKS_H
#define REPORT_STORED_STACKS_H

#include "report/decode/batch.h"
#include "report/trace/trace_modules.h"

/*
 * Add all stacks of @unwound to @batch, which is empty: their numbers are the ids.  Returns 0,
 * -ENOMEM, or MLK_E_CORRUPT: it has a module that @images have not, or a status that there is not.
 */
int stored_stacks_report(const struct mlk_unwound *unwound, const struct trace_modules *images,
			 struct batch *batch);

struct stored_stacks; /* opaque: gathers stacks of a chunk */

/* For stacks of @dw, whose modules are those of @images, both borrowed until stored_stacks_free().
 * *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int stored_stacks_new(struct stored_stacks **out, const struct dwunw *dw,
		      const struct trace_modules *images);

/* Gather the stacks of the ALLOCs of @batch, where *@ids are the unwinder's.  *@to, without
 * events_crc, is valid until the next call.  Returns 0 or -ENOMEM. */
int stored_stacks_gather(struct stored_stacks *unwound, const struct batch *batch,
			 const uint32_t *ids, struct mlk_unwound *to);

/* Release @unwound; NULL is allowed. */
void stored_stacks_free(struct stored_stacks *unwound);

#endif
