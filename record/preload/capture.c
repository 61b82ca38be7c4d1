/* capture.c - an event into the thread's ring
 *
 * A thread that allocates writes into a ring of its own; a signal handler that interrupts it in
 * this takes another one, its next lane, so that a half-written record is never touched.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include "record/preload/overrun.h"
#include "record/preload/preload.h"

#define NR_LANES 3

/* The main thread's stack grows to its limit; nothing else is mapped so near below its top. */
#define MAIN_STACK_MAX (64ull << 20)

/* A ring as its producer sees it; memory of the target alone. */
struct lane {
	struct preload_ring *ring;
	uint8_t *data;
	uint64_t head, tail;   /* the tail as last read */
	uint64_t last_time;    /* of the event written last */
	uint64_t entered_sp;   /* where the event that is being written was made */
	uint64_t stalled_tail; /* waiting for room was in vain, and the tail stood here */
	bool stalled;
	struct preload_image known;
	uint16_t changed[PRELOAD_MAX_SLICES + 7]; /* indices of slices */
	uint8_t image[PRELOAD_WINDOW] __attribute__((aligned(128)));
};

static __thread struct {
	struct lane *lanes[NR_LANES];
	uint64_t stack_lo, stack_hi; /* equal: not looked yet */
	uint8_t level;		     /* lanes in use */
	bool internal;		     /* what is called now is called by this library */
	bool vforked;		     /* this may be the child of vfork() */
} self __attribute__((tls_model("initial-exec")));

static struct lane *lanes[PRELOAD_MAX_RINGS];
static uint32_t next_ring;
static bool loader_seen; /* the loader was at work: modules may have come or gone */

static void fence(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

bool preload_is_over(const struct preload_header *h)
{
	return __atomic_load_n(&h->ended, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&h->alive, __ATOMIC_RELAXED) & FUTEX_OWNER_DIED;
}

/* The time at which all that was loaded before had come, and nothing is stored that comes after: so
 * what orders two threads' events on one block orders their times. */
static uint64_t event_time(const struct preload_header *h)
{
	if (UNLIKELY(h->clock != PRELOAD_CLOCK_TSC))
		return preload_monotonic_ns();
	_mm_lfence();
	return __rdtsc();
}

void *preload_before_vfork(void)
{
	if (!preload_ready())
		return (void *)(uintptr_t)preload_real.vfork;
	self.vforked = true;
	return (void *)(uintptr_t)preload_real.vfork;
}

/* After vfork(): is this the child, in the parent's memory? */
static bool is_child(void)
{
	if ((uint32_t)preload_syscall(SYS_getpid, 0, 0, 0, 0) != preload_state.pid)
		return true;
	self.vforked = false;
	return false;
}

bool preload_forget_rings(void)
{
	if (self.level || self.internal)
		return false;
	memset(self.lanes, 0, sizeof(self.lanes));
	self.vforked = false;
	loader_seen = false;
	return true;
}

bool preload_is_parent(void)
{
	return !self.vforked || !is_child();
}

static void find_stack(uint32_t tid)
{
	extern void *__libc_stack_end __attribute__((weak));
	int saved_errno = errno;
	pthread_attr_t attr;
	struct rlimit limit;
	void *lo;
	size_t size;

	self.internal = true;
	if (tid == preload_state.pid &&
	    preload_state.main_thread == (uint64_t)__builtin_thread_pointer()) {
		uint64_t room = MAIN_STACK_MAX;

		if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < room)
			room = limit.rlim_cur;
		self.stack_hi = &__libc_stack_end ? (uint64_t)__libc_stack_end : 0;
		self.stack_lo = self.stack_hi > room ? self.stack_hi - room : self.stack_hi;
	} else if (!pthread_getattr_np(pthread_self(), &attr)) {
		if (!pthread_attr_getstack(&attr, &lo, &size)) {
			uint64_t tcb = (uint64_t)__builtin_thread_pointer();

			self.stack_lo = (uint64_t)lo;
			self.stack_hi = (uint64_t)lo + size;
			/* Above its frames stand only its variables and the C library's notes. */
			if (tcb > self.stack_lo && tcb < self.stack_hi)
				self.stack_hi = tcb;
		}
		pthread_attr_destroy(&attr);
	}
	self.internal = false;
	errno = saved_errno;
}

/* Take a free ring for thread @tid.  NULL: there is none. */
static struct lane *take_ring(struct preload_header *h, uint32_t tid)
{
	uint32_t first = __atomic_load_n(&next_ring, __ATOMIC_RELAXED);

	for (uint32_t n = 0; n < h->nr_rings; n++) {
		uint32_t i = (first + n) % h->nr_rings;
		uint64_t none = 0, owner = (uint64_t)preload_state.program << 32 | tid;
		struct preload_ring *r = &h->rings[i];
		long memory;

		if (__atomic_load_n(&r->owner, __ATOMIC_RELAXED) ||
		    !__atomic_compare_exchange_n(&r->owner, &none, owner, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&next_ring, i + 1, __ATOMIC_RELAXED);
		if (!lanes[i]) {
			memory = (long)preload_real.mmap(NULL, sizeof(struct lane),
							 PROT_READ | PROT_WRITE,
							 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (memory == -1) {
				__atomic_store_n(&r->owner, 0, __ATOMIC_RELEASE);
				return NULL;
			}
			lanes[i] = (struct lane *)memory;
		}
		lanes[i]->ring = r;
		lanes[i]->data = (uint8_t *)h + preload_ring_offset(h->nr_rings, h->ring_size, i);
		lanes[i]->head = __atomic_load_n(&r->head, __ATOMIC_RELAXED);
		lanes[i]->tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
		lanes[i]->last_time = event_time(h);
		lanes[i]->stalled = false;
		lanes[i]->known = (struct preload_image){0, 0};
		__atomic_store_n(&r->busy, 0, __ATOMIC_RELEASE);
		return lanes[i];
	}
	return NULL;
}

/* This thread's lane for the current level; NULL: there is no ring. */
static struct lane *open_lane(struct preload_header *h)
{
	uint32_t tid = (uint32_t)preload_syscall(SYS_gettid, 0, 0, 0, 0);
	static uint64_t in_vain_until;
	uint64_t start = preload_monotonic_ns();
	int saved_errno = errno;
	struct lane *lane;

	if (self.stack_lo == self.stack_hi)
		find_stack(tid);
	while (!(lane = take_ring(h, tid)) && h->block_ns && !preload_is_over(h)) {
		uint64_t now = preload_monotonic_ns();

		/* The recorder gives rings of ended threads back; once in vain is enough. */
		if (now > start + h->block_ns)
			__atomic_store_n(&in_vain_until, now + 100 * h->block_ns, __ATOMIC_RELAXED);
		if (now < __atomic_load_n(&in_vain_until, __ATOMIC_RELAXED))
			break;
		preload_wake(&h->wake);
		preload_sleep(&h->ended, 0, 1000000);
	}
	self.lanes[self.level] = lane;
	errno = saved_errno;
	return lane;
}

static bool on_stack(uint64_t sp)
{
	return sp >= self.stack_lo && sp < self.stack_hi;
}

/* An event was being written when this one came.  A handler's stands below it on the stack; where
 * that is not so, the handler was left by a jump, and nothing is being written any more. */
static void settle_level(uint64_t sp)
{
	while (self.level && self.lanes[self.level - 1]) {
		uint64_t at = self.lanes[self.level - 1]->entered_sp;

		if (!on_stack(sp) || !on_stack(at) || sp <= at)
			return;
		self.level--;
	}
}

static void count_lost(struct preload_header *h, struct lane *lane, enum preload_loss kind)
{
	uint64_t *counter = lane ? &lane->ring->lost[kind] : &h->lost[kind];

	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static bool look_at_loader(uint64_t pc)
{
	/* Within the loader too: what it maps next may run at once. */
	__atomic_store_n(&loader_seen, preload_in_loader(pc), __ATOMIC_RELAXED);
	self.internal = true;
	if (preload_modules_changed())
		preload_maps_changed(true);
	self.internal = false;
	return true;
}

/* Begin an event of a call from @pc with the stack at @sp.  NULL: there is nothing to do, or it
 * is counted as lost. */
static struct lane *enter(uint64_t pc, uint64_t sp, enum preload_loss kind)
{
	struct preload_header *h = preload_shared();
	struct lane *lane;

	if (UNLIKELY(!h))
		h = preload_rejoin();
	if (!h || self.internal || preload_is_over(h) || (UNLIKELY(self.vforked) && is_child()))
		return NULL;
	if (UNLIKELY(loader_seen || preload_in_loader(pc)))
		look_at_loader(pc);
	if (UNLIKELY(self.level))
		settle_level(sp);
	lane = self.level < NR_LANES ? self.lanes[self.level] : NULL;
	if (UNLIKELY(!lane) && self.level < NR_LANES)
		lane = open_lane(h);
	if (UNLIKELY(!lane)) {
		count_lost(h, NULL, kind);
		return NULL;
	}
	lane->entered_sp = sp;
	fence();
	self.level++;
	fence();
	return lane;
}

static void leave(void)
{
	fence();
	self.level--;
	fence();
}

/* Wait until the recorder has made room up to @end, as long as is allowed. */
static bool wait_for_room(struct preload_header *h, struct lane *lane, uint64_t end)
{
	uint64_t start;

	if (lane->stalled && lane->stalled_tail == lane->tail)
		return false;
	lane->stalled = false;
	if (!h->block_ns)
		return false;
	start = preload_monotonic_ns();
	/* Wake up to a ring half empty, not to room for one event. */
	__atomic_store_n(&lane->ring->wanted, end - h->ring_size / 2, __ATOMIC_SEQ_CST);
	for (;;) {
		uint32_t seen = __atomic_load_n(&lane->ring->room, __ATOMIC_ACQUIRE);

		lane->tail = __atomic_load_n(&lane->ring->tail, __ATOMIC_ACQUIRE);
		if (lane->tail + h->ring_size / 2 >= end)
			return true;
		preload_wake_recorder(h);
		preload_sleep(&lane->ring->room, seen, 5000000);
		lane->tail = __atomic_load_n(&lane->ring->tail, __ATOMIC_ACQUIRE);
		if (lane->tail + h->ring_size >= end)
			return true;
		if (preload_is_over(h))
			return false;
		if (preload_monotonic_ns() - start >= h->block_ns)
			break;
	}
	lane->stalled = true;
	lane->stalled_tail = lane->tail;
	return false;
}

/* Room for a record of @len bytes, leaving @keep free; its place, or NULL.  Until publish() it is
 * nobody else's. */
static uint8_t *reserve(struct preload_header *h, struct lane *lane, uint32_t len, uint32_t keep)
{
	uint64_t mask = h->ring_size - 1;
	uint64_t at = lane->head, to_end = h->ring_size - (at & mask);
	uint64_t pad = to_end < len ? to_end : 0;
	uint64_t end = at + pad + len;

	if (UNLIKELY(end + h->ring_size / 2 > lane->tail + h->ring_size)) {
		lane->tail = __atomic_load_n(&lane->ring->tail, __ATOMIC_ACQUIRE);
		if (end + h->ring_size / 2 > lane->tail + h->ring_size)
			preload_wake_recorder(h);
		if (end + keep > lane->tail + h->ring_size && !wait_for_room(h, lane, end + keep))
			return NULL;
	}
	if (pad) {
		struct preload_record *r = (struct preload_record *)(lane->data + (at & mask));

		r->len = (uint32_t)pad;
		r->type = PRELOAD_PAD;
		lane->head += pad;
	}
	return lane->data + (lane->head & mask);
}

/* From here to publish() the recorder knows that an earlier event may be on its way. */
static void begin_record(struct lane *lane)
{
	__atomic_store_n(&lane->ring->busy, lane->last_time, __ATOMIC_RELAXED);
	fence();
}

static void publish(struct lane *lane, uint32_t len)
{
	lane->head += len;
	__atomic_store_n(&lane->ring->head, lane->head, __ATOMIC_RELEASE);
	__atomic_store_n(&lane->ring->busy, 0, __ATOMIC_RELEASE);
}

/* What of a stack goes into an event: the aligned slices of [a, b). */
struct span {
	uint64_t a, b;
	uint32_t len, flags;
};

static struct span find_span(const struct preload_header *h, uint64_t sp)
{
	uint64_t page_end = (sp | 4095) + 1;
	struct span s = {.a = sp & ~(uint64_t)(PRELOAD_SLICE - 1),
			 .flags = DWUNW_EVENT_RETURN_ADDRESS};
	uint64_t end;

	if (LIKELY(on_stack(sp))) {
		end = self.stack_hi;
		if (end - sp > h->stack_limit) {
			end = sp + h->stack_limit;
			s.flags |= DWUNW_EVENT_STACK_LIMIT;
		}
	} else {
		/* Of another stack it is only known that this page is there. */
		end = s.a + 2 * PRELOAD_SLICE < page_end ? s.a + 2 * PRELOAD_SLICE : page_end;
		s.flags |= DWUNW_EVENT_STACK_UNBOUNDED;
	}
	/* The slice that holds the stack's last byte lies on the same page as that. */
	s.b = (end + PRELOAD_SLICE - 1) & ~(uint64_t)(PRELOAD_SLICE - 1);
	s.len = (uint32_t)(end - sp);
	return s;
}

/* Fill lane->changed with the indices of slices that the recorder does not know; the first counts
 * as such, for below sp it holds what this library left there.  Returns how many. */
static uint32_t find_changed(struct lane *lane, const struct span *s)
{
	uint64_t at = s->a + PRELOAD_SLICE;
	uint64_t lo = lane->known.lo > at ? lane->known.lo : at;
	uint64_t hi = lane->known.hi < s->b ? lane->known.hi : s->b;
	uint16_t i = 0;
	uint32_t nr = 0;

	lane->changed[nr++] = i++;
	for (; at < lo && at < s->b; at += PRELOAD_SLICE)
		lane->changed[nr++] = i++;
	if (at < hi) {
		nr += preload_compare(lane->image, at, hi, lane->changed + nr, i);
		i = (uint16_t)(i + (hi - at) / PRELOAD_SLICE);
		at = hi;
	}
	for (; at < s->b; at += PRELOAD_SLICE)
		lane->changed[nr++] = i++;
	return nr;
}

/* The most that an event with @nr slices takes. */
static uint32_t alloc_bytes(uint32_t nr)
{
	return (uint32_t)sizeof(struct preload_alloc) +
	       (((uint32_t)sizeof(struct preload_slice) * nr + 7) & ~7u) + nr * PRELOAD_SLICE;
}

/* Which words of the slice at @at to send: those that the recorder does not know.  Below @sp there
 * is nothing of the caller's. */
static uint32_t words_to_send(const struct lane *lane, const uint8_t *image, uint64_t at,
			      uint64_t sp)
{
	uint32_t words;

	if (at < lane->known.lo || at >= lane->known.hi)
		return 0xffff;
	words = preload_diff(image, (const uint8_t *)at);
	return at < sp ? words & (0xffffu << (sp - at) / 8) : words;
}

/* Write @nr slices to @to.  Returns the end. */
static uint8_t *write_slices(struct lane *lane, const struct span *s, uint64_t sp, uint8_t *to,
			     uint32_t nr)
{
	struct preload_slice *slices = (struct preload_slice *)to;
	uint64_t *out = (uint64_t *)(to + ((nr * sizeof(*slices) + 7) & ~7ull));

	for (uint32_t i = 0; i < nr; i++) {
		uint64_t at = s->a + (uint64_t)lane->changed[i] * PRELOAD_SLICE;
		uint64_t *image = (uint64_t *)(lane->image + (at & (PRELOAD_WINDOW - 1)));
		uint32_t words = words_to_send(lane, (const uint8_t *)image, at, sp);

		slices[i].index = lane->changed[i];
		slices[i].words = (uint16_t)words;
		/* Each word is read once: another thread may write to this stack meanwhile, and
		 * both sides must remember the same. */
		for (; words; words &= words - 1) {
			uint32_t k = (uint32_t)__builtin_ctz(words);

			*out++ = image[k] =
				__atomic_load_n((const uint64_t *)at + k, __ATOMIC_RELAXED);
		}
	}
	preload_image_note(&lane->known, s->a, s->b);
	return (uint8_t *)out;
}

/* The first slice alone. */
static void degrade(struct span *s, uint64_t sp)
{
	s->b = s->a + PRELOAD_SLICE;
	s->flags &= ~(uint32_t)DWUNW_EVENT_STACK_LIMIT;
	if (sp + s->len > s->b) {
		s->flags |= DWUNW_EVENT_STACK_DEGRADED;
		s->len = (uint32_t)(s->b - sp);
	}
}

void preload_alloc(enum event_func func, const void *addr, size_t size, const struct caller *c)
{
	uint64_t sp = (uint64_t)c->stack;
	struct lane *lane = enter(c->pc, sp, PRELOAD_LOST_ALLOC);
	struct preload_header *h = preload_shared();
	struct preload_alloc *e;
	struct span s;
	uint32_t nr, len;

	if (!lane)
		return;
	s = find_span(h, sp);
	nr = find_changed(lane, &s);
	len = alloc_bytes(nr);
	if (UNLIKELY(len > h->ring_size / 16 * 7)) {
		degrade(&s, sp);
		nr = 1;
		len = alloc_bytes(nr);
	}
	/* Frees may use all of the ring: a lost one is a false leak. */
	e = (struct preload_alloc *)reserve(h, lane, len, h->ring_size / 16);
	if (UNLIKELY(!e)) {
		count_lost(h, lane, PRELOAD_LOST_ALLOC);
		leave();
		return;
	}
	begin_record(lane);
	lane->last_time = e->record.time = event_time(h);
	e->record.type = EVENT_ALLOC;
	e->record.func = (uint8_t)func;
	e->record.nr_slices = (uint16_t)nr;
	e->record.addr = (uint64_t)addr;
	e->record.size = size;
	e->sp = sp;
	e->pc = c->pc;
	memcpy(e->saved, c->saved, sizeof(e->saved));
	e->flags = s.flags;
	e->stack_len = s.len;
	len = (uint32_t)(write_slices(lane, &s, sp, (uint8_t *)(e + 1), nr) - (uint8_t *)e);
	e->record.len = len;
	publish(lane, len);
	leave();
}

void preload_overrun(uint64_t addr, uint64_t size, const struct overrun *overrun, uint64_t pc)
{
	uint64_t sp = (uint64_t)__builtin_frame_address(0);
	struct lane *lane = enter(pc, sp, PRELOAD_LOST_OVERRUN);
	struct preload_header *h = preload_shared();
	struct preload_overrun *e;

	if (!lane)
		return;
	e = (struct preload_overrun *)reserve(h, lane, sizeof(*e), 0);
	if (UNLIKELY(!e)) {
		count_lost(h, NULL, PRELOAD_LOST_OVERRUN);
		leave();
		return;
	}
	begin_record(lane);
	lane->last_time = e->record.time = event_time(h);
	e->record.len = sizeof(*e);
	e->record.type = EVENT_OVERRUN;
	e->record.func = 0;
	e->record.nr_slices = 0;
	e->record.addr = addr;
	e->record.size = size;
	e->overrun = *overrun;
	publish(lane, sizeof(*e));
	leave();
}

static enum preload_loss loss_of(enum event_type type)
{
	switch (type) {
	case EVENT_RELEASE:
		return PRELOAD_LOST_RELEASE;
	case EVENT_RESTORE:
		return PRELOAD_LOST_RESTORE;
	case EVENT_UNMAP:
		return PRELOAD_LOST_UNMAP;
	default:
		return PRELOAD_LOST_FREE;
	}
}

void preload_small(enum event_type type, const void *addr, uint64_t size, uint64_t pc)
{
	uint64_t sp = (uint64_t)__builtin_frame_address(0);
	struct lane *lane = enter(pc, sp, loss_of(type));
	struct preload_header *h = preload_shared();
	uint32_t len = type == EVENT_UNMAP ? PRELOAD_SMALL + 8 : PRELOAD_SMALL;
	struct preload_record *e;

	if (!lane)
		return;
	e = (struct preload_record *)reserve(h, lane, len, 0);
	if (UNLIKELY(!e)) {
		count_lost(h, lane, loss_of(type));
		leave();
		return;
	}
	begin_record(lane);
	lane->last_time = e->time = event_time(h);
	e->len = len;
	e->type = (uint8_t)type;
	e->func = 0;
	e->nr_slices = 0;
	e->addr = (uint64_t)addr;
	if (type == EVENT_UNMAP)
		e->size = size;
	publish(lane, len);
	leave();
}
