/* thread_ring.c - rings for threads, and the stacks these have */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/libpreload/event/thread_ring.h"

/* The main thread's stack grows to its limit; nothing else is mapped so near below its top. */
#define MAIN_STACK_MAX (64ull << 20)

/* How long a thread waits for the ring of one that lives, and then none does. */
#define ALIVE_NS   1000000000ull
#define IN_VAIN_NS 100000000000ull

/* Of where a ring is written on, whoever wrote that: no record is split, and it never wraps. */
#define MOST_HEAD (UINT64_MAX >> 2 & ~7ull)

__thread struct preload_thread preload_self __attribute__((tls_model("initial-exec")));
struct preload_lanes preload_lanes;

static struct thread_ring *lanes[PRELOAD_MAX_RINGS];
static uint32_t holders[PRELOAD_MAX_RINGS]; /* ids of the threads that took them last */
static uint32_t next_ring;
static uint64_t in_vain_until;
static uint32_t first_tid; /* the thread that took the first ring */

void *preload_before_vfork(void)
{
	if (!preload_ready())
		return (void *)(uintptr_t)preload_real.vfork;
	/* Without a call they cannot be distinguished; the child's blocks are in the parent's
	 * memory. */
	preload_self.vforked = !preload_no_calls();
	return (void *)(uintptr_t)preload_real.vfork;
}

bool thread_ring_is_child(void)
{
	if (!preload_no_calls() &&
	    (uint32_t)preload_syscall(SYS_getpid, 0, 0, 0, 0) != preload_state.pid)
		return true;
	preload_self.vforked = false;
	return false;
}

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

bool preload_is_parent(void)
{
	return !preload_self.vforked || !thread_ring_is_child();
}

static void find_stack(uint32_t tid)
{
	extern void *__libc_stack_end __attribute__((weak));
	struct preload_thread *self = &preload_self;
	int saved_errno = errno;
	pthread_attr_t attr;
	struct rlimit limit;
	void *lo;
	size_t size;

	self->internal_sp = (uint64_t)__builtin_frame_address(0);
	if (tid == preload_state.pid &&
	    preload_state.main_thread == (uint64_t)__builtin_thread_pointer()) {
		uint64_t room = MAIN_STACK_MAX;

		if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < room)
			room = limit.rlim_cur;
		self->stack_hi = &__libc_stack_end ? (uint64_t)__libc_stack_end : 0;
		self->stack_lo = self->stack_hi > room ? self->stack_hi - room : self->stack_hi;
	} else if (!preload_real.pthread_getattr_np(pthread_self(), &attr)) {
		if (!pthread_attr_getstack(&attr, &lo, &size)) {
			uint64_t tcb = (uint64_t)__builtin_thread_pointer();

			self->stack_lo = (uint64_t)lo;
			self->stack_hi = (uint64_t)lo + size;
			/* Above its frames are only its variables and the C library's notes. */
			if (tcb > self->stack_lo && tcb < self->stack_hi)
				self->stack_hi = tcb;
		}
		pthread_attr_destroy(&attr);
	}
	self->internal_sp = 0;
	errno = saved_errno;
}

/* It allocates with the thread's own lock held, which find_stack() would wait for forever were that
 * the thread's first event: so the stack is found before. */
EXPORT int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr)
{
	const struct preload_thread *self = &preload_self;

	if (preload_ready() && preload_shared() && !preload_no_calls() &&
	    self->stack_lo == self->stack_hi)
		find_stack((uint32_t)preload_syscall(SYS_gettid, 0, 0, 0, 0));
	return preload_real.pthread_getattr_np(thread, attr);
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
	long memory;

	if (!lane) {
		memory = (long)preload_real.mmap(NULL, sizeof(struct thread_ring),
						 PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == -1)
			return NULL;
		lane = lanes[i] = (struct thread_ring *)memory;
	}
	lane->ring = r;
	lane->data = (uint8_t *)h + preload_ring_offset(&preload_settings.sizes, i);
	lane->size = preload_ring_size(&preload_settings.sizes, i);
	lane->tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
	lane->last_time = thread_ring_time();
	lane->stalled = false;
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

/* Take a free ring for thread @tid.  NULL: there is none. */
static struct thread_ring *take_ring(struct preload_header *h, uint32_t tid)
{
	uint32_t first = __atomic_load_n(&next_ring, __ATOMIC_RELAXED);

	for (uint32_t n = 0; n < preload_settings.sizes.nr_rings; n++) {
		uint32_t i = (first + n) % preload_settings.sizes.nr_rings;
		uint64_t none = 0, owner = (uint64_t)preload_state.program << 32 | tid;
		struct preload_ring *r = &h->rings[i];
		struct thread_ring *lane;

		if (__atomic_load_n(&r->owner, __ATOMIC_RELAXED) ||
		    !__atomic_compare_exchange_n(&r->owner, &none, owner, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&next_ring, i + 1, __ATOMIC_RELAXED);
		lane = hold(i, tid) ? make_lane(h, i) : NULL;
		if (!lane)
			__atomic_store_n(&r->owner, 0, __ATOMIC_RELEASE);
		if (lane)
			return lane;
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

struct preload_header *thread_ring_find_memory(enum preload_loss kind)
{
	struct preload_header *h = preload_own.unclocked;

	if (!h)
		return preload_rejoin();
	if (!preload_is_over(h))
		thread_ring_lost(h, NULL, kind);
	return NULL;
}

/* Is a ring still that of a thread that has ended?  The recorder gives it back, sooner or later. */
static bool is_recorder_late(const struct preload_header *h)
{
	for (uint32_t i = 0; i < preload_settings.sizes.nr_rings; i++) {
		uint64_t owner = __atomic_load_n(&h->rings[i].owner, __ATOMIC_ACQUIRE);
		uint32_t slot = (uint32_t)(owner >> 32) & ((1u << PRELOAD_SLOT_BITS) - 1);

		if (!owner || slot >= PRELOAD_MAX_PROCESSES ||
		    preload_syscall(SYS_tgkill, h->processes[slot].pid, (uint32_t)owner, 0, 0) ==
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
	int saved_errno = errno;
	struct thread_ring *lane;

	note_thread(tid);
	if (preload_self.stack_lo == preload_self.stack_hi)
		find_stack(tid);
	while (!(lane = take_ring(h, tid)) && wait_for_ring(h, start)) {
		preload_wake(&h->wake);
		preload_sleep(&h->ended, 0, 1000000);
	}
	if (lane) {
		__atomic_store_n(&in_vain_until, 0, __ATOMIC_RELAXED);
		tell_name(lane->ring);
	}
	preload_self.lanes[level] = lane;
	errno = saved_errno;
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

	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

void thread_ring_check_loader(uint64_t pc)
{
	/* Within the loader too: what it maps next may run at once. */
	__atomic_store_n(&preload_lanes.loader_seen, preload_in_loader(pc), __ATOMIC_RELAXED);
	preload_self.internal_sp = (uint64_t)__builtin_frame_address(0);
	if (preload_modules_changed())
		preload_maps_changed(true);
	preload_self.internal_sp = 0;
}
