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

/* Begin another chunk: no stack has a number in it. */
void stored_stacks_begin(struct stored_stacks *unwound);

/* Give the unwinder's stack @id, and its callers, numbers in the chunk, if they have none. *@number
 * is that of @id.  Returns 0 or -ENOMEM. */
int stored_stacks_add(struct stored_stacks *unwound, uint32_t id, uint32_t *number);

/* So many bytes those that have a number take in a chunk, or less; without ALLOCs. */
size_t stored_stacks_bytes(const struct stored_stacks *unwound);

/* The stacks that have one, valid until the next is added; without events_crc and first_ns, and
 * without ALLOCs but those of stored_stacks_gather(). */
void stored_stacks_get(const struct stored_stacks *unwound, struct mlk_unwound *to);

/* Gather the stacks of the ALLOCs of @batch, where *@ids are the unwinder's; NULL: the batch's own
 * are.  *@to, without events_crc, is valid until the next call.  Returns 0 or -ENOMEM. */
int stored_stacks_gather(struct stored_stacks *unwound, const struct batch *batch,
			 const uint32_t *ids, struct mlk_unwound *to);

/* Release @unwound; NULL is allowed. */
void stored_stacks_free(struct stored_stacks *unwound);

#endif
