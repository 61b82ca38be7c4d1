/* stack_image.c - see stack_image.h */
#include "record/preload/ring/stack_image.h"

#include <string.h>

void stack_image_clear(struct stack_image *s)
{
	s->known = (struct preload_image){0, 0};
	s->sp = s->end = 0;
	memset(s->saved, 0, sizeof(s->saved));
}

/* The parts of a record, which are there as far as the sum of them goes. */
struct parts {
	const uint32_t *masks;
	const uint16_t *index;
	const uint64_t *regs;
	const uint32_t *words; /* half words */
	uint32_t nr;
};

/* Find the parts of @e.  False: @len ends before the words. */
static bool find_parts(struct parts *p, const struct preload_alloc *e, uint32_t len)
{
	uint32_t head = preload_alloc_head(e->nr_slices);
	uint32_t nr_regs = (uint32_t)__builtin_popcount(e->regs & ((1 << PRELOAD_NR_SAVED) - 1));

	p->nr = e->nr_slices;
	p->masks = e->masks;
	p->index = (const uint16_t *)(e->masks + p->nr);
	p->regs = (const uint64_t *)((const uint8_t *)e + head);
	p->words = (const uint32_t *)(p->regs + nr_regs);
	return p->nr <= PRELOAD_MAX_SLICES && len >= head + nr_regs * 8;
}

/* Are the slices ascending, and is every other one of [@a, @b) known?  Slices that are not known
 * must be whole.  The number of half words they give goes to *@words. */
static bool slices_fit(const struct stack_image *s, const struct parts *p, uint64_t a, uint64_t b,
		       uint32_t *words)
{
	uint32_t nr_all = (uint32_t)((b - a) / PRELOAD_SLICE), at = 0;
	uint64_t lo = s->known.lo, hi = s->known.hi;

	*words = 0;
	for (; at < p->nr; at++) {
		if (p->index[at] >= nr_all || (at && p->index[at] <= p->index[at - 1]))
			return false;
		*words += (uint32_t)__builtin_popcount(p->masks[at]);
	}
	if (a >= lo && b <= hi)
		return true;
	at = 0;
	for (uint32_t i = 0; i < nr_all; i++) {
		uint64_t addr = a + (uint64_t)i * PRELOAD_SLICE;
		bool given = at < p->nr && p->index[at] == i;

		if ((addr < lo || addr >= hi) && (!given || p->masks[at] != UINT32_MAX))
			return false;
		at += given;
	}
	return true;
}

static void take_slices(struct stack_image *s, const struct parts *p, uint64_t a, uint64_t b)
{
	const uint32_t *from = p->words;

	for (uint32_t i = 0; i < p->nr; i++) {
		uint64_t at = a + (uint64_t)p->index[i] * PRELOAD_SLICE;
		uint32_t *to = (uint32_t *)(s->image + (at & (PRELOAD_WINDOW - 1)));

		for (uint32_t k = p->masks[i]; k; k &= k - 1) {
			uint32_t j = (uint32_t)__builtin_ctz(k);

			to[j] = to[j + PRELOAD_WINDOW / 4] = *from++;
		}
	}
	preload_image_note(&s->known, a, b);
}

/* The stack [s->sp, @end), of which the slices of @p, counted from @a, have changed. */
static void show(struct stack_image *s, const struct parts *p, uint64_t a, uint64_t end,
		 struct shared_view *view)
{
	uint64_t changed = p->nr ? p->index[p->nr - 1] + 1u : 0;

	view->bytes = s->image + (s->sp & (PRELOAD_WINDOW - 1));
	view->len = (uint32_t)(end - s->sp);
	view->kept_from = end == s->end ? a + changed * PRELOAD_SLICE : 0;
	s->end = end;
}

bool stack_image_apply(struct stack_image *s, const struct preload_alloc *e, uint32_t len,
		       uint32_t limit, struct event_alloc *event, struct shared_view *view)
{
	static const uint8_t saved[PRELOAD_NR_SAVED] = {EVENT_RBX, EVENT_RBP, EVENT_R12,
							EVENT_R13, EVENT_R14, EVENT_R15};
	uint64_t a, b;
	uint32_t words;
	struct parts p;

	s->sp += (uint64_t)(int64_t)e->sp_after;
	if (!find_parts(&p, e, len))
		return false;
	for (uint32_t i = 0; i < PRELOAD_NR_SAVED; i++)
		if (e->regs >> i & 1)
			s->saved[i] = *p.regs++;
	if (s->sp >= 1ull << 47 || !e->stack_len || e->stack_len > limit)
		return false;
	a = s->sp & ~(uint64_t)(PRELOAD_SLICE - 1);
	b = (s->sp + e->stack_len + PRELOAD_SLICE - 1) & ~(uint64_t)(PRELOAD_SLICE - 1);
	if (!slices_fit(s, &p, a, b, &words) ||
	    (((uint64_t)((const uint8_t *)(p.words + words) - (const uint8_t *)e) + 7) & ~7ull) !=
		    len)
		return false;
	take_slices(s, &p, a, b);
	for (uint32_t i = 0; i < PRELOAD_NR_SAVED; i++)
		event->regs[saved[i]] = s->saved[i];
	event->regs[EVENT_RSP] = s->sp;
	event->regs[EVENT_RIP] = e->pc;
	show(s, &p, a, s->sp + e->stack_len, view);
	return true;
}
