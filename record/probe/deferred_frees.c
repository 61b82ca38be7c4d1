/* deferred_frees.c - see deferred_frees.h */
#include "record/probe/deferred_frees.h"

#include "mleak.bpf.skel.h"

void deferred_frees_snapshot(struct deferred_frees *k, const struct mleak_bpf *skel)
{
	for (size_t i = 0; i < EVENT_SLOTS; i++) {
		const __u64 *slot = skel->bss->slots[i];

		k->freed[i] = __atomic_load_n(&slot[EVENT_SLOT_FREED], __ATOMIC_ACQUIRE);
		/* It may be that of the next already: then it is that, too, when it is to be taken.
		 */
		k->time_ns[i] = __atomic_load_n(&slot[EVENT_SLOT_FREED_NS], __ATOMIC_RELAXED);
	}
}

bool deferred_frees_next(const struct deferred_frees *k, const struct mleak_bpf *skel, size_t *at,
			 struct kept_free *free)
{
	while (*at < EVENT_SLOTS) {
		__u64 *slot = skel->bss->slots[*at], noted = k->freed[*at];

		free->time_ns = k->time_ns[(*at)++];

		/* Before the exchange: it fails where another thread has the slot meanwhile. */
		free->id = __atomic_load_n(&slot[EVENT_SLOT_ID], __ATOMIC_ACQUIRE);
		if (noted < EVENT_FREED_MIN ||
		    !__atomic_compare_exchange_n(&slot[EVENT_SLOT_FREED], &noted, EVENT_FREED_NONE,
						 false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		free->addr = event_freed(noted);
		return true;
	}
	return false;
}
