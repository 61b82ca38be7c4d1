/* sample.c - which allocations are recorded when not all are, and of which blocks frees then are
 *
 * What is left out costs a thread a subtraction, and its free one look at a byte.  The recorded
 * blocks are in a table of their addresses without locks: eight to a line of the cache, in one of
 * two lines each; before it is an array that counts, by another part of the hash, how many blocks
 * there are, and mostly says that there is none.
 */
#include "record/libpreload/event/sample.h"

_Static_assert(PRELOAD_NR_DIGITS == EVENT_FILTER_DIGITS && PRELOAD_NR_SKIPS == EVENT_SKIP_NR,
	       "both backends draw and count alike");

struct sample_kept *sample_kept;
bool sample_full;

static struct sample_kept *get_kept(void)
{
	struct sample_kept *now = __atomic_load_n(&sample_kept, __ATOMIC_ACQUIRE), *none = NULL;

	if (LIKELY(now != NULL))
		return now;
	if (preload_no_calls())
		return NULL;
	now = preload_get_memory(sizeof(*now));
	if (!now)
		return NULL;
	if (__atomic_compare_exchange_n(&sample_kept, &none, now, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return now;
	preload_give_memory_back(now, sizeof(*now));
	return none;
}

void preload_sample_begin(struct preload_header *h)
{
	if (preload_by_thread())
		preload_count_begin(h);
	else if (preload_settings.filter.on)
		get_kept();
}

/* Put @to in the place of @from, in one of the lines of @addr.  False: @from is not there. */
static bool replace(struct sample_kept *k, uint64_t addr, uint64_t from, uint64_t to)
{
	uint64_t line = sample_hash(addr) >> 24 & (SAMPLE_LINES - 1);

	for (uint32_t i = 0; i < 2 * SAMPLE_LINE; i++) {
		uint64_t *slot = &k->lines[line ^ i / SAMPLE_LINE][i % SAMPLE_LINE], was = from;

		if (__atomic_load_n(slot, __ATOMIC_RELAXED) == from &&
		    __atomic_compare_exchange_n(slot, &was, to, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return true;
	}
	return false;
}

static bool keep(uint64_t addr)
{
	struct sample_kept *k = get_kept();

	if (k && replace(k, addr, 0, addr)) {
		__atomic_fetch_add(sample_cell(k, addr), 1, __ATOMIC_RELEASE);
		return true;
	}
	__atomic_store_n(&sample_full, true, __ATOMIC_RELEASE);
	return false;
}

/* Was the block at @addr recorded?  It is forgotten. */
static bool forget(uint64_t addr)
{
	struct sample_kept *k = __atomic_load_n(&sample_kept, __ATOMIC_ACQUIRE);

	if (!k || LIKELY(!__atomic_load_n(sample_cell(k, addr), __ATOMIC_ACQUIRE)) ||
	    !replace(k, addr, addr, 0))
		return false;
	__atomic_fetch_sub(sample_cell(k, addr), 1, __ATOMIC_RELEASE);
	return true;
}

/* Count what is left out, in this thread's first ring; threads that may be counted alone need none.
 * Returns false. */
static bool skip(struct preload_header *h, enum event_skip why, uint64_t bytes)
{
	struct thread_ring *lane = preload_self.lanes[0];

	if (preload_by_thread()) {
		preload_count_skip(h, why, bytes);
		return false;
	}
	if (UNLIKELY(!lane))
		lane = thread_ring_open(h, 0);
	if (lane)
		sample_count(lane, why, bytes);
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
	s->state = (sample_hash(__rdtsc()) ^ sample_hash(h->nonce + (uint64_t)s)) | 1;
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
	if (preload_by_thread())
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

	if (preload_by_thread())
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
	if (LIKELY(!known && !__atomic_load_n(&sample_full, __ATOMIC_ACQUIRE)))
		return skip(h, EVENT_SKIP_FREE, 0);
	if (!known) {
		*type = EVENT_FREE;
		*unsure = true;
	}
	return true;
}
