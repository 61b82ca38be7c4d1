/* reserve.c - see reserve.h */
#include "record/libpreload/event/reserve.h"

/* A thread goes on after this, however little room there is.  Much shorter ones cost more than they
 * save: whatever else the processor runs meanwhile, the program finds its caches empty. */
#define WAIT_NS 25000000u

bool lane_wait(struct preload_header *h, struct thread_ring *lane, uint64_t end)
{
	uint64_t size = lane->size, block_ns = preload_settings.block_ns;
	uint64_t start, moved;

	if (lane->stalled && lane->stalled_tail == lane->tail)
		return false;
	lane->stalled = false;
	if (!block_ns)
		return false;
	start = preload_monotonic_ns();
	moved = lane->tail;
	/* Wake up to a ring half empty, not to room for one event. */
	__atomic_store_n(&lane->ring->wanted, end - size / 2, __ATOMIC_SEQ_CST);
	for (;;) {
		uint32_t seen = __atomic_load_n(&lane->ring->room, __ATOMIC_ACQUIRE);

		lane->tail = __atomic_load_n(&lane->ring->tail, __ATOMIC_ACQUIRE);
		if (lane->tail + size / 2 >= end)
			return true;
		preload_wake_recorder(h);
		preload_sleep(&lane->ring->room, seen, block_ns < WAIT_NS ? block_ns : WAIT_NS);
		lane->tail = __atomic_load_n(&lane->ring->tail, __ATOMIC_ACQUIRE);
		if (lane->tail + size >= end)
			return true;
		if (preload_is_over(h))
			return false;
		/* A slow recorder is waited for, a stopped one not forever. */
		if (lane->tail != moved)
			start = preload_monotonic_ns();
		moved = lane->tail;
		if (preload_monotonic_ns() - start >= block_ns)
			break;
	}
	lane->stalled = true;
	lane->stalled_tail = lane->tail;
	return false;
}
