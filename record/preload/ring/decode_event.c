/* decode_event.c - a record out of a ring of a preloaded library into an event */
#include "record/preload/ring/shared_ring_state.h"

#include <string.h>

#include "bpf/event.h"
#include "record/libpreload/overrun.h"
#include "record/libpreload/python_record.h"

/* Is @func what an allocation's record may name? */
static bool is_alloc_func(uint8_t func)
{
	return (func >= FUNC_MALLOC && func <= FUNC_NEW_ARRAY) || func == FUNC_OVERRUN ||
	       func == (FUNC_MMAP | FUNC_RESERVED);
}

/* Fill *@event from @e, a copy of a whole record of thread @id.  False: it cannot be. */
static bool fill_overrun(struct event_overrun *event, const struct preload_overrun *e, uint64_t id)
{
	*event = (struct event_overrun){.block = {.head = {.word = EVENT_OVERRUN},
						  .id = id,
						  .addr = e->record.addr,
						  .value = e->record.size},
					.overrun = e->overrun};
	return event->overrun.len <= OVERRUN_BYTES && event->overrun.changed <= event->overrun.len;
}

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

	if (!is_alloc_func(e->record.func) ||
	    !stack_image_apply(&r->stack, e, r->len, rs->opts.stack_limit, &rs->event, view))
		return false;
	/* A handler's event came between, from another ring, or one that is no allocation. */
	if (*last != r - rs->rings)
		view->kept_from = 0;
	*last = e->record.func == FUNC_OVERRUN ? UINT16_MAX : (uint16_t)(r - rs->rings);
	rs->event.head.word = event_word(
		EVENT_ALLOC, e->record.func | (e->flags & DWUNW_EVENT_STACK_JOINED ? FUNC_PART : 0),
		0);
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

	if (fill_overrun(&event, (const struct preload_overrun *)r->record, id_of(r)))
		return rs->opts.event(rs->opts.ctx, time_ns, &event, NULL);
	rs->bad++;
	return 0;
}

/* A goroutine's stack, made of the record in its place. */
static int hand_over_part(struct shared_rings *rs, const struct shared_ring *r, uint64_t time_ns)
{
	struct preload_part *e = (struct preload_part *)r->record;
	struct event_part part = {.head = {.word = event_word(EVENT_PART, 0, 0)},
				  .id = id_of(r),
				  .g = e->record.addr,
				  .left = e->left,
				  .sp = e->sp,
				  .hi = e->record.size,
				  .len = r->len - sizeof(*e)};

	memcpy(e, &part, sizeof(part));
	return rs->opts.event(rs->opts.ctx, time_ns, e, NULL);
}

_Static_assert(sizeof(struct event_part) == offsetof(struct preload_part, bytes),
	       "one takes the place of the other");
/* The frames of an interpreter, for the allocation that follows. */
static int hand_over_frames(struct shared_rings *rs, const struct shared_ring *r, uint64_t time_ns)
{
	const struct preload_frames *e = (const struct preload_frames *)r->record;
	struct event_frames *to = &rs->frames.event;

	*to = (struct event_frames){.head = {.word = EVENT_FRAMES},
				    .id = id_of(r),
				    .sp = e->record.addr,
				    .flags = (uint32_t)e->record.size,
				    .nr = (uint32_t)(e->record.size >> 32)};
	if (to->nr > EVENT_PYTHON_FRAMES || r->len != sizeof(*e) + to->nr * sizeof(e->frames[0])) {
		rs->bad++;
		return 0;
	}
	memcpy(rs->frames.all, e->frames, to->nr * sizeof(e->frames[0]));
	return rs->opts.event(rs->opts.ctx, time_ns, to, NULL);
}

static int hand_over_code(struct shared_rings *rs, const struct shared_ring *r, uint64_t time_ns)
{
	struct event_code_object object = {.head = {.word = EVENT_CODE},
					   .id = id_of(r),
					   .code = (const struct preload_code *)r->record,
					   .len = r->len};

	return rs->opts.event(rs->opts.ctx, time_ns, &object, NULL);
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
	if (e->type == EVENT_PART)
		return hand_over_part(rs, r, time_ns);
	if (e->type == EVENT_FRAMES)
		return hand_over_frames(rs, r, time_ns);
	if (e->type == EVENT_CODE)
		return hand_over_code(rs, r, time_ns);
	small.head.word = event_word(e->type, e->type == EVENT_FREE && e->func, 0);
	small.value = event_has_range(e->type) ? e->size : time_ns;
	return rs->opts.event(rs->opts.ctx, time_ns, &small, NULL);
}

_Static_assert(PRELOAD_NR_SKIPS == MLK_SKIPPED_CHILD, "the library's counts are the trace's");

static void add_lost(struct mlk_losses *losses, const uint64_t *lost)
{
	static const enum mlk_loss kinds[PRELOAD_NR_LOST] = {
		[PRELOAD_LOST_ALLOC] = MLK_LOST_ALLOC,
		[PRELOAD_LOST_FREE] = MLK_LOST_FREE,
		[PRELOAD_LOST_RELEASE] = MLK_LOST_RELEASE,
		[PRELOAD_LOST_RESTORE] = MLK_LOST_RESTORE,
		[PRELOAD_LOST_UNMAP] = MLK_LOST_UNMAP,
		[PRELOAD_LOST_FRAMES] = MLK_LOST_FRAMES,
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

void shared_rings_losses(const struct shared_rings *rs, struct mlk_losses *losses)
{
	const struct preload_header *memory = rs->opts.memory;

	losses->count[MLK_LOST_ALLOC] += rs->bad;
	add_lost(losses, memory->lost);
	losses->count[MLK_LOST_OVERRUN] +=
		__atomic_load_n(&memory->lost[PRELOAD_LOST_OVERRUN], __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < rs->opts.sizes.nr_rings; i++) {
		add_lost(losses, memory->rings[i].lost);
		add_skipped(losses, &memory->rings[i]);
	}
}

/* The bytes that a record of @type has at least, or exactly when it has no slices.  0: no such. */
static uint32_t least_bytes(uint8_t type)
{
	switch (type) {
	case EVENT_ALLOC:
		return PRELOAD_ALLOC;
	case EVENT_FREE:
	case EVENT_RELEASE:
	case EVENT_RESTORE:
	case EVENT_EXEC:
		return PRELOAD_SMALL;
	case EVENT_UNMAP:
	case EVENT_ACCESSIBLE:
	case EVENT_GIVEN_BACK:
	case EVENT_LAZILY:
		return PRELOAD_SMALL + 8;
	case EVENT_OVERRUN:
		return sizeof(struct preload_overrun);
	case EVENT_PART:
		return sizeof(struct preload_part);
	case EVENT_FRAMES:
		return sizeof(struct preload_frames);
	case EVENT_CODE:
		return sizeof(struct preload_code);
	default:
		return 0;
	}
}

bool shared_record_fits(uint8_t type, uint32_t len, uint32_t most)
{
	uint32_t least = least_bytes(type);

	return least && len >= least && len <= most;
}
