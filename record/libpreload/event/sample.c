/* sample.c - which allocations are recorded when not all are, and of which blocks frees then are
 *
 * What is left out costs a thread a subtraction, and its free one look at a byte.  The recorded
 * blocks are in a table of their addresses without locks: eight to a line of the cache, in one of
 * two lines each; before it is an array that counts, by another part of the hash, how many blocks
 * there are, and mostly says that there is none.
 */
#include <sys/mman.h>

#include "record/libpreload/event/thread_ring.h"

#define LINE  8		 /* addresses */
#define LINES (1u << 15) /* a power of two */
#define CELLS (1u << 16) /* the same */

_Static_assert(PRELOAD_NR_DIGITS == EVENT_FILTER_DIGITS && PRELOAD_NR_SKIPS == EVENT_SKIP_NR,
	       "both backends draw and count alike");

static struct kept {
	uint8_t cells[CELLS];
	uint64_t lines[LINES][LINE];
} * kept;

static bool full; /* a block found no place: any free may be of one that was recorded */

static struct kept *get_kept(void)
{
	struct kept *now = __atomic_load_n(&kept, __ATOMIC_ACQUIRE), *none = NULL;

	if (LIKELY(now != NULL))
		return now;
	if (preload_no_calls())
		return NULL;
	now = preload_real.mmap(NULL, sizeof(*now), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (now == MAP_FAILED)
		return NULL;
	if (__atomic_compare_exchange_n(&kept, &none, now, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return now;
	preload_real.munmap(now, sizeof(*now));
	return none;
}

void preload_sample_begin(struct preload_header *h)
{
	if (preload_settings.filter.by_thread)
		preload_count_begin(h);
	else if (preload_settings.filter.on)
		get_kept();
}

static uint64_t hash(uint64_t addr)
{
	return addr * 0x9e3779b97f4a7c15;
}

static uint8_t *cell_of(struct kept *k, uint64_t addr)
{
	return &k->cells[hash(addr) >> 48 & (CELLS - 1)];
}

/* Put @to in the place of @from, in one of the lines of @addr.  False: @from is not there. */
static bool replace(struct kept *k, uint64_t addr, uint64_t from, uint64_t to)
{
	uint64_t line = hash(addr) >> 24 & (LINES - 1);

	for (uint32_t i = 0; i < 2 * LINE; i++) {
		uint64_t *slot = &k->lines[line ^ i / LINE][i % LINE], was = from;

		if (__atomic_load_n(slot, __ATOMIC_RELAXED) == from &&
		    __atomic_compare_exchange_n(slot, &was, to, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return true;
	}
	return false;
}

static bool keep(uint64_t addr)
{
	struct kept *k = get_kept();

	if (k && replace(k, addr, 0, addr)) {
		__atomic_fetch_add(cell_of(k, addr), 1, __ATOMIC_RELEASE);
		return true;
	}
	__atomic_store_n(&full, true, __ATOMIC_RELEASE);
	return false;
}

/* Was the block at @addr recorded?  It is forgotten. */
static bool forget(uint64_t addr)
{
	struct kept *k = __atomic_load_n(&kept, __ATOMIC_ACQUIRE);

	if (!k || LIKELY(!__atomic_load_n(cell_of(k, addr), __ATOMIC_ACQUIRE)) ||
	    !replace(k, addr, addr, 0))
		return false;
	__atomic_fetch_sub(cell_of(k, addr), 1, __ATOMIC_RELEASE);
	return true;
}

/* By one instruction, because a handler may come between. */
static void add(uint64_t *counter, uint64_t nr)
{
	__asm__("addq %1, %0" : "+m"(*counter) : "er"(nr) : "cc");
}

/* Count what is left out, in this thread's first ring; threads that may be counted alone need none.
 * Returns false. */
static bool skip(struct preload_header *h, enum event_skip why, uint64_t bytes)
{
	struct thread_ring *lane = preload_self.lanes[0];

	if (preload_settings.filter.by_thread) {
		preload_count_skip(h, why, bytes);
		return false;
	}
	if (UNLIKELY(!lane))
		lane = thread_ring_open(h, 0);
	if (lane) {
		add(&lane->ring->skipped[why], 1);
		add(&lane->ring->skipped_bytes[why], bytes);
	}
	return false;
}

static uint32_t draw_32(struct preload_sampler *s)
{
	s->state ^= s->state >> 12;
	s->state ^= s->state << 25;
	s->state ^= s->state >> 27;
	return (uint32_t)(s->state * 0x2545f4914f6cdd1d >> 32);
}

/* Units left out before the next that is taken, geometrically distributed: each binary digit of
 * such a number is drawn with its own chance. */
static uint64_t draw(struct preload_sampler *s, const struct preload_filter *f)
{
	uint64_t distance = 0;

	for (uint32_t i = 0; i < PRELOAD_NR_DIGITS && f->digits[i]; i++)
		if (draw_32(s) < f->digits[i])
			distance |= 1ull << i;
	return distance;
}

/* What was walked over so far does not matter to what comes: each thread may begin anew. */
static void begin(struct preload_sampler *s, const struct preload_header *h)
{
	s->state = (hash(__rdtsc()) ^ hash(h->nonce + (uint64_t)s)) | 1;
	for (int i = 0; i < 8; i++)
		draw_32(s);
	s->distance = draw(s, &preload_settings.filter);
	s->drawn = true;
}

bool preload_sample_takes(const struct preload_header *h, uint64_t size)
{
	struct preload_sampler *s = &preload_self.sampler;
	uint64_t weight = preload_settings.filter.by_bytes ? size + !size : 1;

	if (UNLIKELY(!s->drawn))
		begin(s, h);
	if (LIKELY(s->distance >= weight)) {
		s->distance -= weight;
		return false;
	}
	s->distance = draw(s, &preload_settings.filter);
	return true;
}

/* What thread_ring_enter() would see to, if this call made an event. */
static bool look(const struct preload_header *h, uint64_t pc)
{
	if (preload_is_over(h) || (UNLIKELY(preload_self.vforked) && thread_ring_is_child()))
		return false;
	if (UNLIKELY(preload_lanes.loader_seen || preload_in_loader(pc)))
		thread_ring_check_loader(pc);
	return true;
}

bool preload_sample_alloc(struct preload_header *h, enum event_func func, const void *addr,
			  size_t size, const struct caller *at)
{
	const struct preload_filter *f = &preload_settings.filter;

	if (!look(h, at->pc))
		return false;
	if (UNLIKELY(f->begin) && thread_ring_time() < f->begin)
		return skip(h, EVENT_SKIP_DELAY, size);
	if (size < f->min_size || size > f->max_size)
		return skip(h, EVENT_SKIP_SIZE, size);
	if (f->by_thread)
		return preload_count_alloc(h, func, addr, size, at);
	if (f->samples && !preload_sample_takes(h, size))
		return skip(h, EVENT_SKIP_SAMPLE, size);
	/* What unmaps it is written in any case. */
	if ((func & ~FUNC_RESERVED) != FUNC_MMAP && func != FUNC_MREMAP && !keep((uint64_t)addr))
		skip(h, EVENT_SKIP_UNKEPT, size);
	return true;
}

bool preload_sample_free(struct preload_header *h, enum event_type *type, const void *addr,
			 uint64_t size, uint64_t pc, bool *unsure)
{
	struct preload_sampler *s = &preload_self.sampler;
	bool known;

	if (preload_settings.filter.by_thread)
		return look(h, pc) && preload_count_free(h, type, (uint64_t)addr, size, unsure);
	if (*type == EVENT_RESTORE) {
		/* Of what was unmapped nothing is kept. */
		if (s->released == PRELOAD_RELEASED_OTHER)
			return false;
		if (s->released == PRELOAD_RELEASED_KEPT)
			keep((uint64_t)addr);
		return true;
	}
	s->released = PRELOAD_RELEASED_NONE;
	if (*type != EVENT_FREE && *type != EVENT_RELEASE)
		return true;
	if (!look(h, pc))
		return false;
	known = forget((uint64_t)addr);
	if (*type == EVENT_RELEASE)
		s->released = known ? PRELOAD_RELEASED_KEPT : PRELOAD_RELEASED_OTHER;
	if (LIKELY(!known && !__atomic_load_n(&full, __ATOMIC_ACQUIRE)))
		return skip(h, EVENT_SKIP_FREE, 0);
	if (!known) {
		*type = EVENT_FREE;
		*unsure = true;
	}
	return true;
}
