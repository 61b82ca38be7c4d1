/* shared_ring.c - hostile bytes into events, in order */
#include "record/shared_ring.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bpf/event.h"
#include "record/preload/overrun.h"

#define TAIL_BYTES 8192 /* room is given back in such lots */

/* An event that takes so long to be written never will be: the thread left it by a jump. */
#define MAX_BUSY_NS 5000000000u

struct ring {
	uint64_t tail, limit;	/* what lies between may be read */
	uint64_t told_tail;	/* as the producer knows it */
	uint64_t safe;		/* all events before this time are below limit */
	uint32_t tid;		/* 0: nobody's */
	uint32_t tgid;		/* its process */
	uint32_t program;	/* as preload_process.program */
	uint64_t busy_since_ns; /* 0: not */
	uint32_t len;		/* of the record at tail, which was copied; 0: none */
	union {
		struct preload_record head;
		struct preload_alloc alloc;
	} * record;
	struct preload_image known;
	uint8_t *image;
};

struct shared_rings {
	struct shared_rings_opts opts;
	uint64_t bad; /* events that were none */
	uint32_t nr_active;
	struct ring *active[PRELOAD_MAX_RINGS];
	struct event_alloc *event;
	struct ring rings[PRELOAD_MAX_RINGS];
};

static uint32_t record_room(const struct shared_rings *rs)
{
	return rs->opts.ring_size / 2;
}

int shared_rings_new(struct shared_rings **out, const struct shared_rings_opts *opts)
{
	struct shared_rings *rs = calloc(1, sizeof(*rs));

	*out = NULL;
	if (!rs)
		return -ENOMEM;
	rs->opts = *opts;
	rs->event = calloc(1, sizeof(*rs->event) + EVENT_STACK_ALIGN + PRELOAD_MAX_STACK);
	if (!rs->event) {
		free(rs);
		return -ENOMEM;
	}
	*out = rs;
	return 0;
}

/* Which slot of the table of processes an owner names. */
static uint32_t slot_of(uint32_t program)
{
	return program & ((1u << PRELOAD_SLOT_BITS) - 1);
}

static struct preload_ring *shared(const struct shared_rings *rs, const struct ring *r)
{
	return &rs->opts.memory->rings[r - rs->rings];
}

static const uint8_t *data_of(const struct shared_rings *rs, const struct ring *r)
{
	return (const uint8_t *)rs->opts.memory + preload_ring_offset(rs->opts.nr_rings,
								      rs->opts.ring_size,
								      (uint32_t)(r - rs->rings));
}

static void tell_tail(struct shared_rings *rs, struct ring *r)
{
	struct preload_ring *m = shared(rs, r);
	uint64_t before = r->told_tail, wanted;

	r->told_tail = r->tail;
	__atomic_store_n(&m->tail, r->tail, __ATOMIC_SEQ_CST);
	wanted = __atomic_load_n(&m->wanted, __ATOMIC_SEQ_CST);
	if (wanted <= before || wanted > r->tail)
		return;
	__atomic_fetch_add(&m->room, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &m->room, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* What follows in @r cannot be told apart any more. */
static void skip_all(struct shared_rings *rs, struct ring *r)
{
	rs->bad++;
	r->tail = r->limit;
	r->known = (struct preload_image){0, 0};
	tell_tail(rs, r);
}

/* The bytes that a record of @type has at least, or exactly when it has no slices.  0: no such. */
static uint32_t least_bytes(uint8_t type)
{
	switch (type) {
	case EVENT_ALLOC:
		return sizeof(struct preload_alloc);
	case EVENT_FREE:
	case EVENT_RELEASE:
	case EVENT_RESTORE:
	case EVENT_EXEC:
		return PRELOAD_SMALL;
	case EVENT_UNMAP:
		return PRELOAD_SMALL + 8;
	case EVENT_OVERRUN:
		return sizeof(struct preload_overrun);
	default:
		return 0;
	}
}

/* Copy the next record of @r.  False: there is none up to the limit. */
static bool fetch(struct shared_rings *rs, struct ring *r)
{
	const uint8_t *data = data_of(rs, r);
	uint64_t mask = rs->opts.ring_size - 1;

	r->len = 0;
	while (r->tail < r->limit) {
		uint64_t at = r->tail & mask, to_end = rs->opts.ring_size - at;
		struct {
			uint32_t len;
			uint8_t type, func;
			uint16_t nr_slices;
		} start;

		memcpy(&start, data + at, sizeof(start));
		if (start.len < 8 || start.len & 7 || start.len > r->limit - r->tail ||
		    start.len > to_end) {
			skip_all(rs, r);
			return false;
		}
		if (start.type == PRELOAD_PAD) {
			r->tail += start.len;
			continue;
		}
		if (start.len > record_room(rs) || !least_bytes(start.type) ||
		    start.len < least_bytes(start.type)) {
			rs->bad++;
			r->tail += start.len;
			continue;
		}
		memcpy(r->record, data + at, start.len);
		r->len = r->record->head.len = start.len;
		return true;
	}
	if (r->tail != r->told_tail)
		tell_tail(rs, r);
	return false;
}

/* A thread has taken this ring. */
static bool adopt(struct shared_rings *rs, struct ring *r, uint64_t owner)
{
	r->program = (uint32_t)(owner >> 32);
	r->tgid = rs->opts.process_in(rs->opts.ctx, slot_of(r->program));
	if (!r->tgid)
		return false;
	if (!r->record)
		r->record = malloc(record_room(rs));
	if (!r->image)
		r->image = calloc(1, PRELOAD_WINDOW);
	if (!r->record || !r->image)
		return false;
	r->tid = (uint32_t)owner;
	r->known = (struct preload_image){0, 0};
	r->busy_since_ns = 0;
	return true;
}

/* Did its thread run a program that another has followed, or that has ended? */
static bool is_old(const struct shared_rings *rs, const struct ring *r)
{
	uint32_t slot = slot_of(r->program);

	return rs->opts.has_ended(rs->opts.ctx, slot) ||
	       r->program !=
		       __atomic_load_n(&rs->opts.memory->processes[slot].program, __ATOMIC_ACQUIRE);
}

/* It was being written at the last look already: for too long? */
static bool is_left(struct ring *r)
{
	struct timespec ts;
	uint64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	if (!r->busy_since_ns)
		r->busy_since_ns = now_ns;
	return now_ns - r->busy_since_ns > MAX_BUSY_NS;
}

/* How far one ring is filled, and up to which time. */
static void look_at(struct shared_rings *rs, struct ring *r, uint64_t calm)
{
	struct preload_ring *s = shared(rs, r);
	uint64_t busy = __atomic_load_n(&s->busy, __ATOMIC_ACQUIRE);
	uint64_t head = __atomic_load_n(&s->head, __ATOMIC_ACQUIRE);
	bool moved = head != r->limit;

	if (head < r->limit || head - r->tail > rs->opts.ring_size || head & 7) {
		skip_all(rs, r);
		head = r->limit;
	}
	r->limit = head;
	if (!busy || moved)
		r->busy_since_ns = 0;
	if (busy && busy < calm && !is_old(rs, r) && !is_left(r))
		calm = busy;
	if (calm > r->safe)
		r->safe = calm;
}

uint64_t shared_rings_look(struct shared_rings *rs, uint64_t now, uint64_t margin)
{
	uint64_t safe = now - margin;

	rs->nr_active = 0;
	for (uint32_t i = 0; i < rs->opts.nr_rings; i++) {
		struct ring *r = &rs->rings[i];
		uint64_t owner = r->tid;

		if (!owner)
			owner = __atomic_load_n(&rs->opts.memory->rings[i].owner, __ATOMIC_ACQUIRE);
		if (!(uint32_t)owner || (!r->tid && !adopt(rs, r, owner)))
			continue;
		look_at(rs, r, now - margin);
		if (r->safe < safe)
			safe = r->safe;
		if (!r->len && !fetch(rs, r))
			continue;
		rs->active[rs->nr_active++] = r;
	}
	return safe;
}

/* Are the slices of @r's record ascending, and is every other one of [@a, @b) known?  Slices that
 * are not known must be whole.  The number of words they give goes to *@words. */
static bool slices_fit(const struct ring *r, uint64_t a, uint64_t b, uint32_t *words)
{
	const struct preload_slice *slice = (const struct preload_slice *)(&r->record->alloc + 1);
	uint32_t nr = r->record->head.nr_slices, nr_all = (uint32_t)((b - a) / PRELOAD_SLICE);
	uint32_t at = 0;

	*words = 0;
	for (uint32_t i = 0; i < nr_all; i++) {
		uint64_t addr = a + (uint64_t)i * PRELOAD_SLICE;
		bool known = addr >= r->known.lo && addr < r->known.hi;
		bool given = at < nr && slice[at].index == i;

		if (!known && (!given || slice[at].words != 0xffff))
			return false;
		if (given)
			*words += (uint32_t)__builtin_popcount(slice[at++].words);
	}
	return at == nr;
}

static bool take_slices(struct ring *r, uint64_t a, uint64_t b)
{
	const struct preload_alloc *e = &r->record->alloc;
	const struct preload_slice *slice = (const struct preload_slice *)(e + 1);
	uint32_t nr = e->record.nr_slices, words;
	uint32_t before = (uint32_t)(sizeof(*e) + ((nr * sizeof(*slice) + 7) & ~7ull));
	const uint64_t *from = (const uint64_t *)((const uint8_t *)e + before);

	if (nr > PRELOAD_MAX_SLICES || r->len < before || !slices_fit(r, a, b, &words) ||
	    r->len != before + words * 8)
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t at = a + (uint64_t)slice[i].index * PRELOAD_SLICE;
		uint64_t *to = (uint64_t *)(r->image + (at & (PRELOAD_WINDOW - 1)));

		for (uint32_t k = slice[i].words; k; k &= k - 1)
			to[__builtin_ctz(k)] = *from++;
	}
	preload_image_note(&r->known, a, b);
	return true;
}

static void copy_stack(const struct ring *r, uint8_t *to, uint64_t sp, uint32_t len)
{
	uint32_t at = (uint32_t)(sp & (PRELOAD_WINDOW - 1));
	uint32_t first = PRELOAD_WINDOW - at < len ? PRELOAD_WINDOW - at : len;

	memcpy(to, r->image + at, first);
	memcpy(to + first, r->image, len - first);
}

static uint64_t id_of(const struct ring *r)
{
	return (uint64_t)r->tgid << 32 | r->tid;
}

static bool is_func(uint8_t func)
{
	return (func >= FUNC_MALLOC && func <= FUNC_NEW_ARRAY) || func == FUNC_OVERRUN;
}

/* Put the record of @r, an allocation, into rs->event.  False: it is none. */
static bool make_alloc(struct shared_rings *rs, struct ring *r, uint64_t time_ns)
{
	static const uint8_t saved[6] = {EVENT_RBX, EVENT_RBP, EVENT_R12,
					 EVENT_R13, EVENT_R14, EVENT_R15};
	const struct preload_alloc *e = &r->record->alloc;
	uint64_t a = e->sp & ~(uint64_t)(PRELOAD_SLICE - 1), b;
	uint32_t below = e->sp % EVENT_STACK_ALIGN;

	if (e->sp >= 1ull << 47 || !e->stack_len || e->stack_len > rs->opts.stack_limit ||
	    !is_func(e->record.func))
		return false;
	b = (e->sp + e->stack_len + PRELOAD_SLICE - 1) & ~(uint64_t)(PRELOAD_SLICE - 1);
	if (!take_slices(r, a, b))
		return false;
	rs->event->type = EVENT_ALLOC;
	rs->event->func = e->record.func;
	rs->event->id = id_of(r);
	rs->event->addr = e->record.addr;
	rs->event->size = e->record.size;
	rs->event->time_ns = time_ns;
	for (int i = 0; i < 6; i++)
		rs->event->regs[saved[i]] = e->saved[i];
	rs->event->regs[EVENT_RSP] = e->sp;
	rs->event->regs[EVENT_RIP] = e->pc;
	rs->event->flags = e->flags & (DWUNW_EVENT_STACK_LIMIT | DWUNW_EVENT_STACK_DEGRADED |
				       DWUNW_EVENT_STACK_UNBOUNDED);
	rs->event->stack_len = below + e->stack_len;
	copy_stack(r, rs->event->stack + below, e->sp, e->stack_len);
	return true;
}

static int hand_over_overrun(struct shared_rings *rs, const struct ring *r, uint64_t time_ns)
{
	const struct preload_overrun *e = (const struct preload_overrun *)r->record;
	struct event_overrun event = {.block = {.type = EVENT_OVERRUN,
						.id = id_of(r),
						.addr = e->record.addr,
						.value = e->record.size},
				      .overrun = e->overrun};

	if (event.overrun.len > OVERRUN_BYTES || event.overrun.changed > event.overrun.len) {
		rs->bad++;
		return 0;
	}
	return rs->opts.event(rs->opts.ctx, time_ns, &event, sizeof(event));
}

static int hand_over(struct shared_rings *rs, struct ring *r)
{
	const struct preload_record *e = &r->record->head;
	uint64_t time_ns = rs->opts.to_ns(rs->opts.ctx, e->time);
	struct event_small small = {.type = e->type, .id = id_of(r), .addr = e->addr};

	if (e->type == EVENT_ALLOC) {
		if (make_alloc(rs, r, time_ns))
			return rs->opts.event(rs->opts.ctx, time_ns, rs->event,
					      sizeof(*rs->event) + rs->event->stack_len);
		rs->bad++;
		return 0;
	}
	if (e->type == EVENT_OVERRUN)
		return hand_over_overrun(rs, r, time_ns);
	small.value = e->type == EVENT_UNMAP ? e->size : time_ns;
	return rs->opts.event(rs->opts.ctx, time_ns, &small, sizeof(small));
}

/* The ring whose event is next, and in *@other the time of the next one in another ring. */
static struct ring *earliest(const struct shared_rings *rs, uint64_t *other)
{
	struct ring *best = NULL;

	*other = UINT64_MAX;
	for (uint32_t i = 0; i < rs->nr_active; i++) {
		struct ring *r = rs->active[i];
		uint64_t time = r->record->head.time;

		if (!best || time < best->record->head.time ||
		    (time == best->record->head.time && r->record->head.type != EVENT_ALLOC)) {
			*other = best ? best->record->head.time : UINT64_MAX;
			best = r;
		} else if (time < *other) {
			*other = time;
		}
	}
	return best;
}

static void deactivate(struct shared_rings *rs, const struct ring *r)
{
	uint32_t i = 0;

	while (rs->active[i] != r)
		i++;
	rs->active[i] = rs->active[--rs->nr_active];
}

int shared_rings_consume(struct shared_rings *rs, uint64_t until)
{
	uint64_t other;
	struct ring *r;
	int err = 0;

	while (!err && (r = earliest(rs, &other)) != NULL && r->record->head.time < until) {
		do {
			err = hand_over(rs, r);
			r->tail += r->len;
			if (r->tail - r->told_tail >= TAIL_BYTES)
				tell_tail(rs, r);
			if (!fetch(rs, r)) {
				deactivate(rs, r);
				break;
			}
		} while (!err && r->record->head.time < other && r->record->head.time < until);
	}
	for (uint32_t i = 0; i < rs->nr_active; i++)
		if (rs->active[i]->tail != rs->active[i]->told_tail)
			tell_tail(rs, rs->active[i]);
	return err;
}

bool shared_rings_pressed(const struct shared_rings *rs)
{
	for (uint32_t i = 0; i < rs->opts.nr_rings; i++) {
		const struct ring *r = &rs->rings[i];

		if (r->tid && __atomic_load_n(&shared(rs, r)->head, __ATOMIC_SEQ_CST) - r->tail >=
				      rs->opts.ring_size / 2)
			return true;
	}
	return false;
}

void shared_rings_give_back(struct shared_rings *rs, bool (*is_gone)(uint32_t tgid, uint32_t tid))
{
	for (uint32_t i = 0; i < rs->opts.nr_rings; i++) {
		struct ring *r = &rs->rings[i];

		if (!r->tid || r->len || (!is_old(rs, r) && !is_gone(r->tgid, r->tid)))
			continue;
		/* It may have written more before it ended. */
		if (__atomic_load_n(&shared(rs, r)->head, __ATOMIC_ACQUIRE) != r->tail)
			continue;
		r->tid = 0;
		__atomic_store_n(&shared(rs, r)->owner, 0, __ATOMIC_RELEASE);
	}
}

static void add(struct mlk_losses *losses, const uint64_t *lost)
{
	static const enum mlk_loss kinds[PRELOAD_NR_LOST] = {
		[PRELOAD_LOST_ALLOC] = MLK_LOST_ALLOC,
		[PRELOAD_LOST_FREE] = MLK_LOST_FREE,
		[PRELOAD_LOST_RELEASE] = MLK_LOST_RELEASE,
		[PRELOAD_LOST_RESTORE] = MLK_LOST_RESTORE,
		[PRELOAD_LOST_UNMAP] = MLK_LOST_UNMAP,
	};

	for (int i = 0; i < PRELOAD_NR_LOST; i++)
		losses->count[kinds[i]] += __atomic_load_n(&lost[i], __ATOMIC_RELAXED);
}

void shared_rings_losses(const struct shared_rings *rs, struct mlk_losses *losses)
{
	add(losses, rs->opts.memory->lost);
	for (uint32_t i = 0; i < rs->opts.nr_rings; i++)
		add(losses, rs->opts.memory->rings[i].lost);
	losses->count[MLK_LOST_OVERRUN] +=
		__atomic_load_n(&rs->opts.memory->lost[PRELOAD_LOST_OVERRUN], __ATOMIC_RELAXED);
	losses->count[MLK_LOST_ALLOC] += rs->bad;
}

void shared_rings_free(struct shared_rings *rs)
{
	if (!rs)
		return;
	for (uint32_t i = 0; i < PRELOAD_MAX_RINGS; i++) {
		free(rs->rings[i].record);
		free(rs->rings[i].image);
	}
	free(rs->event);
	free(rs);
}
