/* sample.h - which calls are recorded when not all are */
#ifndef LIBPRELOAD_SAMPLE_H
#define LIBPRELOAD_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "record/libpreload/ring.h"

/* What a thread remembers of sampling. */
struct preload_sampler {
	uint64_t state, distance; /* units left out before the next that is taken */
	bool drawn;
	enum { PRELOAD_RELEASED_NONE, PRELOAD_RELEASED_KEPT, PRELOAD_RELEASED_OTHER } released;
};

/* Make room for what will be remembered. */
void preload_sample_begin(void);

/* Is the block of @size bytes at @addr, allocated by @func from @pc, to be recorded?  It is counted
 * as left out, or remembered. */
bool preload_sample_alloc(struct preload_header *h, enum event_func func, const void *addr,
			  size_t size, uint64_t pc);

/* Is *@type, of a block at @addr, to be recorded?  *@unsure: it may be of a block that was not;
 * then
 * *@type is a free. */
bool preload_sample_free(struct preload_header *h, enum event_type *type, const void *addr,
			 uint64_t pc, bool *unsure);

#endif
