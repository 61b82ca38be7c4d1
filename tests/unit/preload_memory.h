/* preload_memory.h - for the tests of the library's rings: the memory that it shares, and its
 * reader */
#ifndef TESTS_PRELOAD_MEMORY_H
#define TESTS_PRELOAD_MEMORY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/preload/ring/merge_rings.h"

static inline uint64_t time_as_it_is(void *ctx, uint64_t time)
{
	(void)ctx;
	return time;
}

/* Memory without a record, in rings of @opts->sizes, and what reads it as @opts says. */
static inline int share_memory(struct preload_header **memory, struct shared_rings **rings,
			       struct shared_rings_opts *opts)
{
	size_t bytes = preload_ring_offset(&opts->sizes, opts->sizes.nr_rings);

	*memory = aligned_alloc(4096, bytes);
	if (!*memory)
		return -1;
	memset(*memory, 0, bytes);
	opts->memory = *memory;
	opts->stack_limit = PRELOAD_MAX_STACK;
	opts->to_ns = time_as_it_is;
	return shared_rings_new(rings, opts);
}

#endif
