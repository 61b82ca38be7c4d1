/* cache_key.h - what the unwound stacks of a trace depend on, as two numbers */
#ifndef REPORT_CACHE_KEY_H
#define REPORT_CACHE_KEY_H

#include "format/cache.h"
#include "report/trace/trace_modules.h"

/* What the headers of a trace's chunks say; all zero is before the first. */
struct cache_trace {
	uint64_t digest;  /* of all headers, in which there are the sums of all payloads */
	uint64_t events;  /* in chunks of events */
	size_t nr_chunks; /* of events */
	bool unwound;	  /* some have their stacks in the trace */
};

/* Note the next chunk of the trace. */
void cache_trace_note(struct cache_trace *of, const struct mlk_chunk *chunk);

/*
 * What the stacks of a trace with @header and the chunks @of depend on, if @dw unwinds them, where
 * @images were loaded: all chunks; for each module whether there is one, and by what it is
 * unwound, wherever that was found; and this program, as it was built.
 */
struct mlk_cache_key cache_key_of(const struct mlk_header *header, const struct cache_trace *of,
				  const struct trace_modules *images, const struct dwunw *dw);

#endif
