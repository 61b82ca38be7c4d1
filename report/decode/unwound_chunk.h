/* unwound_chunk.h - the events of a chunk, with stacks that were unwound before */
#ifndef REPORT_UNWOUND_CHUNK_H
#define REPORT_UNWOUND_CHUNK_H

#include "report/decode/batch.h"
#include "report/trace/trace_modules.h"

/*
 * Read the stacks that batch->unwound has for the events of batch->chunk, and what the trace says
 * there of these events, into @batch, which is empty.  What happened after @stop_ns is left out.
 * The position of @trace changes; the modules are those of @images.
 *
 * Returns 0, -ENOMEM, the -errno of read(2), or MLK_E_CORRUPT: they are of another chunk, or cannot
 * be used; @batch may have some of them then.
 */
int unwound_chunk_read(struct mlk_reader *trace, const struct trace_modules *images,
		       uint64_t stop_ns, struct batch *batch);

#endif
