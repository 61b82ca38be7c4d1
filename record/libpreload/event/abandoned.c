/* abandoned.c - events that are being written no more: a signal handler that interrupted them was
 * left by a jump */
#include <signal.h>
#include <sys/syscall.h>

#include "record/libpreload/event/thread_ring.h"

/* The event that was being written to @lane was left by a jump out of a handler. */
static void give_up(struct preload_header *h, struct thread_ring *lane)
{
	enum preload_loss kind = lane->entered_kind;

	/* A free and a release are recorded before they happen, and now they will not. */
	if (lane->entered_head == __atomic_load_n(&lane->ring->head, __ATOMIC_RELAXED) &&
	    kind != PRELOAD_LOST_FREE && kind != PRELOAD_LOST_RELEASE)
		thread_ring_lost(h, kind < PRELOAD_NR_LOST ? lane : NULL, kind);
	thread_ring_begin_anew(lane);
}

static bool on_alternate(const stack_t *s, uint64_t sp)
{
	return !(s->ss_flags & SS_DISABLE) && sp - (uint64_t)s->ss_sp < s->ss_size;
}

/* What a handler does is below what it interrupts, or on the alternate stack, which may lie within
 * the thread's own. */
bool abandoned_is_left(uint64_t at, uint64_t sp)
{
	stack_t alternate = {.ss_flags = SS_DISABLE};
	bool was_there, is_there;

	if (!preload_no_calls())
		preload_syscall(SYS_sigaltstack, 0, (long)&alternate, 0, 0);
	was_there = on_alternate(&alternate, at);
	is_there = on_alternate(&alternate, sp);
	if (was_there != is_there)
		return was_there && thread_ring_on_stack(sp);
	return (is_there || (thread_ring_on_stack(sp) && thread_ring_on_stack(at))) && sp >= at;
}

bool thread_ring_is_internal(uint64_t sp)
{
	if (!abandoned_is_left(preload_self.internal_sp, sp))
		return true;
	preload_self.internal_sp = 0;
	return false;
}

uint32_t abandoned_settle(struct preload_header *h, uint64_t sp)
{
	struct thread_ring *const *own = preload_self.lanes;
	uint32_t nr = 0;

	while (nr < PRELOAD_NR_LANES && own[nr] && own[nr]->entered_sp)
		nr++;
	while (nr && abandoned_is_left(own[nr - 1]->entered_sp, sp)) {
		/* A handler that comes meanwhile is below this, and keeps away. */
		own[--nr]->entered_sp = sp;
		thread_ring_fence();
		give_up(h, own[nr]);
	}
	return nr;
}

void preload_give_up_left(void)
{
	struct preload_header *h = preload_shared();
	uint64_t sp = (uint64_t)__builtin_frame_address(0);

	if (h)
		abandoned_settle(h, sp);
	if (preload_self.internal_sp)
		thread_ring_is_internal(sp);
}
