/* thread_ring.c - rings for threads */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "record/libpreload/event/thread_ring.h"

/* How long a thread waits for the ring of one that lives, and then none does. */
#define ALIVE_NS   1000000000ull
#define IN_VAIN_NS 100000000000ull

/* Of where a ring is written on, whoever wrote that: no record is split, and it never wraps. */
#define MOST_HEAD (UINT64_MAX >> 2 & ~7ull)

struct preload_lanes preload_lanes;

static struct thread_ring *lanes[PRELOAD_MAX_RINGS];
static uint32_t holders[PRELOAD_MAX_RINGS]; /* ids of the threads that took them last */
static uint32_t next_ring;
static uint64_t in_vain_until;
static uint32_t first_tid; /* the thread that took the first ring */

bool preload_forget_rings(void)
{
	struct preload_thread *self = &preload_self;

	for (uint32_t i = 0; i < PRELOAD_NR_LANES; i++)
		if (self->lanes[i] && self->lanes[i]->entered_sp)
			return false;
	if (self->internal_sp)
		return false;
	memset(self->lanes, 0, sizeof(self->lanes));
	self->vforked = false;
	self->sampler.drawn = false; /* its parent goes on with these numbers */
	preload_count_child();
	preload_lanes.loader_seen = false;
	preload_lanes.threads = false;
	first_tid = 0;
	return true;
}

/* Such a clock may not advance for as long as a block takes from one thread to another (ACPI's
 * timer: 280 ns): all events together take each time once. */
uint64_t thread_ring_time_in_steps(void)
{
	struct preload_header *h = preload_shared();
	uint64_t time = preload_monotonic_ns(), last;

	if (!h)
		return time;
	last = __atomic_load_n(&h->last_time, __ATOMIC_RELAXED);
	do
		time = time > last ? time : last + 1;
	while (!__atomic_compare_exchange_n(&h->last_time, &last, time, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED));
	return time;
}

/* From the second thread on, all of them order their events by time. */
static void note_thread(uint32_t tid)
{
	uint32_t none = 0;

	if (!__atomic_compare_exchange_n(&first_tid, &none, tid, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE) &&
	    none != tid)
		__atomic_store_n(&preload_lanes.threads, true, __ATOMIC_SEQ_CST);
}

void thread_ring_begin_anew(struct thread_ring *lane)
{
	struct preload_ring *r = lane->ring;

	lane->head = __atomic_load_n(&r->head, __ATOMIC_RELAXED) & MOST_HEAD;
	lane->based = lane->regs_known = false;
	lane->known = (struct preload_image){0, 0};
	__atomic_store_n(&r->busy, 0, __ATOMIC_RELEASE);
	thread_ring_leave(lane);
}

/* Make ring @i, which is taken, a lane.  NULL: no memory. */
static struct thread_ring *make_lane(struct preload_header *h, uint32_t i)
{
	struct preload_ring *r = &h->rings[i];
	struct thread_ring *lane = lanes[i];

	if (!lane) {
		lane = preload_get_memory(sizeof(*lane));
		if (!lane)
			return NULL;
		lanes[i] = lane;
	}
	lane->ring = r;
	lane->data = (uint8_t *)h + preload_ring_offset(&preload_settings.sizes, i);
	lane->size = preload_ring_size(&preload_settings.sizes, i);
	lane->tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
	lane->last_time = thread_ring_time();
	lane->stalled = false;
	lane->python.own = lane->python.other = 0;
	thread_ring_begin_anew(lane);
	return lane;
}

/* Does no thread of this process own ring @i, which is said to be free? Others may write to what
 * says so.  From now on it is thread @tid's. */
static bool hold(uint32_t i, uint32_t tid)
{
	uint32_t last = __atomic_load_n(&holders[i], __ATOMIC_ACQUIRE);

	for (uint32_t n = 0; n < PRELOAD_NR_LANES; n++)
		if (lanes[i] && preload_self.lanes[n] == lanes[i])
			return false;
	if (last && last != tid &&
	    preload_syscall(SYS_tgkill, preload_state.pid, last, 0, 0) != -ESRCH)
		return false;
	return __atomic_compare_exchange_n(&holders[i], &last, tid, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* Take a free ring for thread @tid.  NULL: there is none, or *@poor: no memory for what this
 * process keeps beside it. */
static struct thread_ring *take_ring(struct preload_header *h, uint32_t tid, bool *poor)
{
	uint32_t first = __atomic_load_n(&next_ring, __ATOMIC_RELAXED);

	for (uint32_t n = 0; n < preload_settings.sizes.nr_rings && !*poor; n++) {
		uint32_t i = (first + n) % preload_settings.sizes.nr_rings;
		uint64_t none = 0, owner = (uint64_t)preload_state.program << 32 | tid;
		struct preload_ring *r = &h->rings[i];

		if (__atomic_load_n(&r->owner, __ATOMIC_RELAXED) ||
		    !__atomic_compare_exchange_n(&r->owner, &none, owner, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&next_ring, i + 1, __ATOMIC_RELAXED);
		if (hold(i, tid)) {
			struct thread_ring *lane = make_lane(h, i);

			if (lane)
				return lane;
			*poor = true;
			__atomic_store_n(&holders[i], 0, __ATOMIC_RELEASE);
		}
		__atomic_store_n(&r->owner, 0, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* The recorder may come too late to ask for it: the thread has ended. */
static void tell_name(struct preload_ring *r)
{
	uint64_t name[2] = {0};

	preload_syscall(SYS_prctl, PR_GET_NAME, (long)name, 0, 0);
	for (int i = 0; i < 2; i++)
		__atomic_store_n(&r->name[i], name[i], __ATOMIC_RELAXED);
}

/* The process in the table's @slot, by the number that it has here: to the recorder this process
 * may have another one. */
static uint32_t process_in(const struct preload_header *h, uint32_t slot)
{
	const struct preload_process *p = &h->processes[slot];

	return p == preload_state.process ? preload_state.pid : p->pid;
}

/* Is a ring still that of a thread that has ended?  The recorder gives it back, sooner or later. */
static bool is_recorder_late(const struct preload_header *h)
{
	for (uint32_t i = 0; i < preload_settings.sizes.nr_rings; i++) {
		uint64_t owner = __atomic_load_n(&h->rings[i].owner, __ATOMIC_ACQUIRE);
		uint32_t slot = (uint32_t)(owner >> 32) & ((1u << PRELOAD_SLOT_BITS) - 1);

		if (!owner || slot >= PRELOAD_MAX_PROCESSES ||
		    preload_syscall(SYS_tgkill, process_in(h, slot), (uint32_t)owner, 0, 0) ==
			    -ESRCH)
			return true;
	}
	return false;
}

/* May a thread that has waited for a ring since @start wait on? Where all threads that have one
 * live on it may be forever, and once in vain is enough, until another finds a ring. */
static bool wait_for_ring(const struct preload_header *h, uint64_t start)
{
	uint64_t now = preload_monotonic_ns(), most = preload_settings.block_ns;

	if (!most || preload_is_over(h) || now < __atomic_load_n(&in_vain_until, __ATOMIC_RELAXED))
		return false;
	if (now - start < (most < ALIVE_NS ? most : ALIVE_NS) ||
	    (now - start < most && is_recorder_late(h)))
		return true;
	__atomic_store_n(&in_vain_until, now + IN_VAIN_NS, __ATOMIC_RELAXED);
	return false;
}

static struct thread_ring *open_lane(struct preload_header *h, uint32_t level)
{
	uint32_t tid = (uint32_t)preload_syscall(SYS_gettid, 0, 0, 0, 0);
	uint64_t start = preload_monotonic_ns();
	struct thread_ring *lane;
	bool poor = false;

	note_thread(tid);
	if (preload_self.stack_lo == preload_self.stack_hi)
		thread_ring_find_stack(tid);
	/* Rings come back from the recorder, memory does not (ulimit -v): nobody waits for that. */
	while (!(lane = take_ring(h, tid, &poor)) && !poor && wait_for_ring(h, start)) {
		preload_wake(&h->wake);
		preload_sleep(&h->ended, 0, 1000000);
	}
	if (lane) {
		__atomic_store_n(&in_vain_until, 0, __ATOMIC_RELAXED);
		tell_name(lane->ring);
	} else if (!poor && !preload_is_over(h)) {
		__atomic_fetch_add(&h->ringless, 1, __ATOMIC_RELAXED);
	}
	preload_self.lanes[level] = lane;
	return lane;
}

struct thread_ring *thread_ring_open(struct preload_header *h, uint32_t level)
{
	if (!preload_no_calls())
		return open_lane(h, level);
	preload_tell_confined(h, PRELOAD_LEFT_OUT);
	return NULL;
}

struct thread_ring *thread_ring_find(struct preload_header *h, uint64_t sp)
{
	uint32_t level = abandoned_settle(h, sp);

	if (level == PRELOAD_NR_LANES)
		return NULL;
	return preload_self.lanes[level] ? preload_self.lanes[level] : thread_ring_open(h, level);
}

void thread_ring_lost(struct preload_header *h, struct thread_ring *lane, enum preload_loss kind)
{
	uint64_t *counter = lane ? &lane->ring->lost[kind] : &h->lost[kind];

	/* What waited for room when the recording ended comes after its end. */
	if (!preload_is_over(h))
		__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}
