/* decode_event.c - see decode_event.h */
#include "record/preload/ring/decode_event.h"

#include <string.h>

#include "bpf/event.h"
#include "record/libpreload/overrun.h"
#include "record/preload/ring/shared_record.h"

static uint64_t id_of(const struct shared_ring *r)
{
	return (uint64_t)r->tgid << 32 | r->tid;
}

/* Put the record of @r, an allocation, into rs->event.  False: it is none. */
static bool make_alloc(struct shared_rings *rs, struct shared_ring *r, uint64_t time_ns,
		       struct shared_view *view)
{
	const struct preload_alloc *e = &r->record->alloc;
	uint16_t *last = &rs->last_ring[r->tid % LAST_RINGS];

	if (!shared_record_func(e->record.func) ||
	    !stack_image_apply(&r->stack, e, r->len, rs->opts.stack_limit, &rs->event, view))
		return false;
	/* A handler's event came between, from another ring, or one that is no allocation. */
	if (*last != r - rs->rings)
		view->kept_from = 0;
	*last = e->record.func == FUNC_OVERRUN ? UINT16_MAX : (uint16_t)(r - rs->rings);
	rs->event.head.word = event_word(EVENT_ALLOC, e->record.func, 0);
	rs->event.id = id_of(r);
	rs->event.addr = e->record.addr;
	rs->event.size = e->record.size;
	rs->event.time_ns = time_ns;
	rs->event.flags = e->flags & (DWUNW_EVENT_STACK_LIMIT | DWUNW_EVENT_STACK_DEGRADED |
				      DWUNW_EVENT_STACK_UNBOUNDED);
	return true;
}

static int hand_over_overrun(struct shared_rings *rs, const struct shared_ring *r, uint64_t time_ns)
{
	struct event_overrun event;

	if (shared_record_overrun(&event, (const struct preload_overrun *)r->record, id_of(r)))
		return rs->opts.event(rs->opts.ctx, time_ns, &event, NULL);
	rs->bad++;
	return 0;
}

/* It is there since before the ring's first event. */
static void hand_over_name(struct shared_rings *rs, struct shared_ring *r)
{
	const struct preload_ring *from = &rs->opts.memory->rings[r - rs->rings];
	uint64_t words[2];
	char name[sizeof(words) + 1] = "";

	r->named = true;
	for (int i = 0; i < 2; i++)
		words[i] = __atomic_load_n(&from->name[i], __ATOMIC_RELAXED);
	memcpy(name, words, sizeof(words));
	if (rs->opts.named)
		rs->opts.named(rs->opts.ctx, r->tgid, r->tid, name);
}

int decode_event(struct shared_rings *rs, struct shared_ring *r)
{
	const struct preload_record *e = &r->record->head;
	uint64_t time_ns = rs->opts.to_ns(rs->opts.ctx, r->time);
	struct shared_view view;
	struct event_small small = {.id = id_of(r), .addr = e->addr, .time_ns = time_ns};

	if (!r->named)
		hand_over_name(rs, r);
	if (e->type == EVENT_ALLOC) {
		if (make_alloc(rs, r, time_ns, &view))
			return rs->opts.event(rs->opts.ctx, time_ns, &rs->event, &view);
		rs->bad++;
		return 0;
	}
	if (e->type == EVENT_OVERRUN)
		return hand_over_overrun(rs, r, time_ns);
	small.head.word = event_word(e->type, e->type == EVENT_FREE && e->func, 0);
	small.value = e->type == EVENT_UNMAP ? e->size : time_ns;
	return rs->opts.event(rs->opts.ctx, time_ns, &small, NULL);
}
