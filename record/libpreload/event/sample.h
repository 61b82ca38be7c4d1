/* sample.h - the table of the blocks that are recorded when not all are, and what is left out in
 * few instructions */
#ifndef LIBPRELOAD_SAMPLE_H
#define LIBPRELOAD_SAMPLE_H

#include "record/libpreload/event/thread_ring.h"

#define SAMPLE_LINE  8		/* addresses */
#define SAMPLE_LINES (1u << 15) /* a power of two */
#define SAMPLE_CELLS (1u << 16) /* the same */

/* The blocks; NULL: none was recorded yet. */
extern struct sample_kept {
	uint8_t cells[SAMPLE_CELLS];
	uint64_t lines[SAMPLE_LINES][SAMPLE_LINE];
} * sample_kept;

extern bool sample_full; /* a block found no place: any free may be of one that was recorded */

/* Of an address, or whatever. */
static inline uint64_t sample_hash(uint64_t addr)
{
	return addr * 0x9e3779b97f4a7c15;
}

/* What counts the blocks like @addr in @k. */
static inline uint8_t *sample_cell(struct sample_kept *k, uint64_t addr)
{
	return &k->cells[sample_hash(addr) >> 48 & (SAMPLE_CELLS - 1)];
}

/* By one instruction, because a handler may come between. */
static inline void sample_add(uint64_t *counter, uint64_t nr)
{
	__asm__("addq %1, %0" : "+m"(*counter) : "er"(nr) : "cc");
}

/* Count what is left out of what @lane would have. */
static inline void sample_count(struct thread_ring *lane, enum event_skip why, uint64_t bytes)
{
	struct preload_ring *ring = lane->ring;

	sample_add(&ring->skipped[why], 1);
	sample_add(&ring->skipped_bytes[why], bytes);
}

/* This thread's first ring, if a call from @pc may be left out by a look at it alone. */
static inline struct thread_ring *sample_quick(uint64_t pc)
{
	const struct preload_filter *f = &preload_settings.filter;

	if (LIKELY(!f->on) ||
	    UNLIKELY(f->begin || preload_lanes.loader_seen || preload_in_loader(pc)))
		return NULL;
	return preload_self.lanes[0];
}

/* Is an allocation of @size bytes left out?  It is counted.  False: preload_alloc() decides. */
static inline bool sample_leaves_out(uint64_t size, uint64_t pc)
{
	const struct preload_filter *f = &preload_settings.filter;
	struct thread_ring *lane = sample_quick(pc);
	struct preload_sampler *s = &preload_self.sampler;
	uint64_t weight = f->by_bytes ? size + !size : 1;

	if (!lane)
		return false;
	if (size < f->min_size || size > f->max_size) {
		sample_count(lane, EVENT_SKIP_SIZE, size);
		return true;
	}
	if (!f->samples || UNLIKELY(!s->drawn || s->distance < weight))
		return false;
	s->distance -= weight;
	sample_count(lane, EVENT_SKIP_SAMPLE, size);
	return true;
}

/* The same of the free of the block at @addr, and preload_small(). */
static inline bool sample_leaves_out_free(const void *addr, uint64_t pc)
{
	struct thread_ring *lane = sample_quick(pc);
	struct sample_kept *k = __atomic_load_n(&sample_kept, __ATOMIC_ACQUIRE);

	if (!lane || (k && __atomic_load_n(sample_cell(k, (uint64_t)addr), __ATOMIC_ACQUIRE)) ||
	    UNLIKELY(__atomic_load_n(&sample_full, __ATOMIC_ACQUIRE)))
		return false;
	preload_self.sampler.released = PRELOAD_RELEASED_NONE;
	sample_count(lane, EVENT_SKIP_FREE, 0);
	return true;
}

#endif
