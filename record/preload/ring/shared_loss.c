/* shared_loss.c - see shared_loss.h */
#include "record/preload/ring/shared_loss.h"

_Static_assert(PRELOAD_NR_SKIPS == MLK_SKIPPED_CHILD, "the library's counts are the trace's");

static void add_lost(struct mlk_losses *losses, const uint64_t *lost)
{
	static const enum mlk_loss kinds[PRELOAD_NR_LOST] = {
		[PRELOAD_LOST_ALLOC] = MLK_LOST_ALLOC,
		[PRELOAD_LOST_FREE] = MLK_LOST_FREE,
		[PRELOAD_LOST_RELEASE] = MLK_LOST_RELEASE,
		[PRELOAD_LOST_RESTORE] = MLK_LOST_RESTORE,
		[PRELOAD_LOST_UNMAP] = MLK_LOST_UNMAP,
	};

	for (int i = 0; i < PRELOAD_NR_LOST; i++)
		losses->count[kinds[i]] += __atomic_load_n(&lost[i], __ATOMIC_RELAXED);
}

static void add_skipped(struct mlk_losses *losses, const struct preload_ring *ring)
{
	for (int why = 0; why < PRELOAD_NR_SKIPS; why++) {
		losses->skipped[why] += __atomic_load_n(&ring->skipped[why], __ATOMIC_RELAXED);
		losses->skipped_bytes[why] +=
			__atomic_load_n(&ring->skipped_bytes[why], __ATOMIC_RELAXED);
	}
}

void shared_loss_add(const struct preload_header *memory, uint32_t nr_rings,
		     struct mlk_losses *losses)
{
	add_lost(losses, memory->lost);
	losses->count[MLK_LOST_OVERRUN] +=
		__atomic_load_n(&memory->lost[PRELOAD_LOST_OVERRUN], __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < nr_rings; i++) {
		add_lost(losses, memory->rings[i].lost);
		add_skipped(losses, &memory->rings[i]);
	}
}
