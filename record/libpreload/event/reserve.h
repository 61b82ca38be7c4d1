/* reserve.h - a place in a thread's ring, and its publishing */
#ifndef LIBPRELOAD_RESERVE_H
#define LIBPRELOAD_RESERVE_H

#include "record/libpreload/event/thread_ring.h"

/* Wait until the recorder has made room up to @end, as long as is allowed.  False: in vain. */
bool lane_wait(struct preload_header *h, struct thread_ring *lane, uint64_t end);

/* Room for @len bytes in a piece, leaving @keep free; its place, or NULL.  Until lane_publish() it
 * is nobody else's. */
static inline uint8_t *lane_reserve(struct preload_header *h, struct thread_ring *lane,
				    uint32_t len, uint32_t keep)
{
	uint64_t size = lane->size, mask = size - 1;
	uint64_t at = lane->head, to_end = size - (at & mask);
	uint64_t pad = to_end < len ? to_end : 0;
	uint64_t end = at + pad + len;

	if (UNLIKELY(end + size / 2 > lane->tail + size)) {
		lane->tail = __atomic_load_n(&lane->ring->tail, __ATOMIC_ACQUIRE);
		if (end + size / 2 > lane->tail + size)
			preload_wake_recorder(h);
		if (end + keep > lane->tail + size && !lane_wait(h, lane, end + keep))
			return NULL;
	}
	if (UNLIKELY(pad)) {
		struct preload_record *r = (struct preload_record *)(lane->data + (at & mask));

		r->len8 = (uint16_t)(pad / 8);
		r->type = PRELOAD_PAD;
		lane->head += pad;
	}
	return lane->data + (lane->head & mask);
}

/* From here to lane_publish() the recorder knows that an earlier event may be on its way. */
static inline void lane_begin(struct thread_ring *lane)
{
	__atomic_store_n(&lane->ring->busy, lane->last_time, __ATOMIC_RELAXED);
	thread_ring_fence();
}

/* The @len bytes that were reserved are an event, and the recorder's from now on. */
static inline void lane_publish(struct thread_ring *lane, uint32_t len)
{
	lane->head += len;
	__atomic_store_n(&lane->ring->head, lane->head, __ATOMIC_RELEASE);
	__atomic_store_n(&lane->ring->busy, 0, __ATOMIC_RELEASE);
}

#endif
