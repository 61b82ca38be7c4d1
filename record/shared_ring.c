/* shared_ring.c - hostile bytes into events, in order */
#include "record/shared_ring.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/event.h"
#include "record/now.h"
#include "record/preload/overrun.h"
#include "record/shared_loss.h"
#include "record/shared_record.h"

#define LAST_RINGS	1024
#define TAIL_BYTES	8192				 /* room is given back in such lots */
#define RECORD_ROOM(rs) ((rs)->opts.sizes.ring_size / 2) /* bytes of a record, at most */

/* An event that takes so long to be written never will be: the thread left it by a jump. */
#define MAX_BUSY_NS 5000000000u

struct ring {
	uint64_t tail, limit;	/* what lies between may be read */
	uint64_t told_tail;	/* as the producer knows it */
	uint64_t safe;		/* all events before this time are below limit */
	uint32_t tid;		/* 0: nobody's */
	uint32_t tgid;		/* its process */
	uint32_t program;	/* as preload_process.program */
	bool named;		/* the thread's name was handed on */
	uint64_t busy_since_ns; /* 0: not */
	uint64_t time;		/* of the record at tail */
	bool based;		/* times and stack pointers have something to count from */
	uint32_t len;		/* of the record at tail, which was copied; 0: none */
	union {
		struct preload_record head;
		struct preload_alloc alloc;
	} * record;
	struct shared_stack stack;
};

struct shared_rings {
	struct shared_rings_opts opts;
	uint64_t bad; /* events that were none */
	uint32_t nr_active;
	struct ring *active[PRELOAD_MAX_RINGS];
	struct event_alloc event;
	uint16_t last_ring[LAST_RINGS]; /* of a thread's event before, by its id */
	struct ring rings[PRELOAD_MAX_RINGS];
};

int shared_rings_new(struct shared_rings **out, const struct shared_rings_opts *opts)
{
	struct shared_rings *rs = calloc(1, sizeof(*rs));

	*out = NULL;
	if (!rs)
		return -ENOMEM;
	rs->opts = *opts;
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
	return (const uint8_t *)rs->opts.memory +
	       preload_ring_offset(&rs->opts.sizes, (uint32_t)(r - rs->rings));
}

static uint64_t size_of(const struct shared_rings *rs, const struct ring *r)
{
	return preload_ring_size(&rs->opts.sizes, (uint32_t)(r - rs->rings));
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
	r->stack.known = (struct preload_image){0, 0};
	tell_tail(rs, r);
}

/* Step over the record @start of @len bytes if it is no event.  False: it may be one. */
static bool step_over(struct shared_rings *rs, struct ring *r, const union shared_start *start,
		      uint32_t len)
{
	uint8_t type = start->record.type;

	if (type == PRELOAD_BASE && len == sizeof(start->base)) {
		r->time = start->base.time;
		r->stack.sp = start->base.sp;
		r->based = true;
	} else if (type != PRELOAD_PAD) {
		if (r->based && shared_record_fits(type, len, RECORD_ROOM(rs)))
			return false;
		rs->bad++;
	}
	r->tail += len;
	return true;
}

/* Copy the next event's record of @r.  False: there is none up to the limit. */
static bool fetch(struct shared_rings *rs, struct ring *r)
{
	const uint8_t *data = data_of(rs, r);
	uint64_t size = size_of(rs, r);

	r->len = 0;
	while (r->tail < r->limit) {
		uint64_t at = r->tail & (size - 1), to_end = size - at;
		union shared_start start = {0};
		uint32_t len;

		memcpy(&start, data + at, to_end < sizeof(start) ? to_end : sizeof(start));
		len = start.record.len8 * 8u;
		if (!len || len > r->limit - r->tail || len > to_end) {
			skip_all(rs, r);
			return false;
		}
		if (step_over(rs, r, &start, len))
			continue;
		memcpy(r->record, data + at, len);
		r->record->head.type = start.record.type; /* which was looked at */
		r->time += r->record->head.after;
		r->len = len;
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
		r->record = malloc(RECORD_ROOM(rs));
	if (!r->stack.image)
		r->stack.image = calloc(1, SHARED_IMAGE);
	if (!r->record || !r->stack.image)
		return false;
	r->tid = (uint32_t)owner;
	shared_stack_clear(&r->stack);
	r->based = r->named = false;
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
	uint64_t now = now_ns();

	if (!r->busy_since_ns)
		r->busy_since_ns = now;
	return now - r->busy_since_ns > MAX_BUSY_NS;
}

/* How far one ring is filled, and up to which time. */
static void look_at(struct shared_rings *rs, struct ring *r, uint64_t calm)
{
	struct preload_ring *s = shared(rs, r);
	uint64_t busy = __atomic_load_n(&s->busy, __ATOMIC_ACQUIRE);
	uint64_t head = __atomic_load_n(&s->head, __ATOMIC_ACQUIRE);
	bool moved = head != r->limit;

	if (head < r->limit || head - r->tail > size_of(rs, r) || head & 7) {
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
	for (uint32_t i = 0; i < rs->opts.sizes.nr_rings; i++) {
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

static uint64_t id_of(const struct ring *r)
{
	return (uint64_t)r->tgid << 32 | r->tid;
}

/* Put the record of @r, an allocation, into rs->event.  False: it is none. */
static bool make_alloc(struct shared_rings *rs, struct ring *r, uint64_t time_ns,
		       struct shared_view *view)
{
	const struct preload_alloc *e = &r->record->alloc;
	uint16_t *last = &rs->last_ring[r->tid % LAST_RINGS];

	if (!shared_record_func(e->record.func) ||
	    !shared_stack_take(&r->stack, e, r->len, rs->opts.stack_limit, &rs->event, view))
		return false;
	/* A handler's event came between, from another ring, or one that is no allocation. */
	if (*last != r - rs->rings)
		view->kept_from = 0;
	*last = e->record.func == FUNC_OVERRUN ? UINT16_MAX : (uint16_t)(r - rs->rings);
	rs->event.type = EVENT_ALLOC;
	rs->event.func = e->record.func;
	rs->event.id = id_of(r);
	rs->event.addr = e->record.addr;
	rs->event.size = e->record.size;
	rs->event.time_ns = time_ns;
	rs->event.flags = e->flags & (DWUNW_EVENT_STACK_LIMIT | DWUNW_EVENT_STACK_DEGRADED |
				      DWUNW_EVENT_STACK_UNBOUNDED);
	return true;
}

static int hand_over_overrun(struct shared_rings *rs, const struct ring *r, uint64_t time_ns)
{
	struct event_overrun event;

	if (shared_record_overrun(&event, (const struct preload_overrun *)r->record, id_of(r)))
		return rs->opts.event(rs->opts.ctx, time_ns, &event, NULL);
	rs->bad++;
	return 0;
}

/* It is there since before the ring's first event. */
static void hand_over_name(struct shared_rings *rs, struct ring *r)
{
	const struct preload_ring *from = shared(rs, r);
	uint64_t words[2];
	char name[sizeof(words) + 1] = "";

	r->named = true;
	for (int i = 0; i < 2; i++)
		words[i] = __atomic_load_n(&from->name[i], __ATOMIC_RELAXED);
	memcpy(name, words, sizeof(words));
	if (rs->opts.named)
		rs->opts.named(rs->opts.ctx, r->tgid, r->tid, name);
}

static int hand_over(struct shared_rings *rs, struct ring *r)
{
	const struct preload_record *e = &r->record->head;
	uint64_t time_ns = rs->opts.to_ns(rs->opts.ctx, r->time);
	struct shared_view view;
	struct event_small small = {.type = e->type, .id = id_of(r), .addr = e->addr};

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
	small.nested = e->type == EVENT_FREE && e->func;
	small.value = e->type == EVENT_UNMAP ? e->size : time_ns;
	return rs->opts.event(rs->opts.ctx, time_ns, &small, NULL);
}

/* The ring whose event is next, and in *@other the time of the next one in another ring. */
static struct ring *earliest(const struct shared_rings *rs, uint64_t *other)
{
	struct ring *best = NULL;

	*other = UINT64_MAX;
	for (uint32_t i = 0; i < rs->nr_active; i++) {
		struct ring *r = rs->active[i];

		if (!best || r->time < best->time ||
		    (r->time == best->time && r->record->head.type != EVENT_ALLOC)) {
			*other = best ? best->time : UINT64_MAX;
			best = r;
		} else if (r->time < *other) {
			*other = r->time;
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

	while (!err && (r = earliest(rs, &other)) != NULL && r->time < until) {
		do {
			err = hand_over(rs, r);
			r->tail += r->len;
			if (r->tail - r->told_tail >= TAIL_BYTES)
				tell_tail(rs, r);
			if (!fetch(rs, r)) {
				deactivate(rs, r);
				break;
			}
		} while (!err && r->time < other && r->time < until);
	}
	for (uint32_t i = 0; i < rs->nr_active; i++)
		if (rs->active[i]->tail != rs->active[i]->told_tail)
			tell_tail(rs, rs->active[i]);
	return err;
}

bool shared_rings_pressed(const struct shared_rings *rs)
{
	for (uint32_t i = 0; i < rs->opts.sizes.nr_rings; i++) {
		const struct ring *r = &rs->rings[i];

		if (r->tid && __atomic_load_n(&shared(rs, r)->head, __ATOMIC_SEQ_CST) - r->tail >=
				      size_of(rs, r) / 2)
			return true;
	}
	return false;
}

void shared_rings_give_back(struct shared_rings *rs, bool (*is_gone)(uint32_t tgid, uint32_t tid))
{
	for (uint32_t i = 0; i < rs->opts.sizes.nr_rings; i++) {
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

void shared_rings_losses(const struct shared_rings *rs, struct mlk_losses *losses)
{
	shared_loss_add(rs->opts.memory, rs->opts.sizes.nr_rings, losses);
	losses->count[MLK_LOST_ALLOC] += rs->bad;
}

void shared_rings_free(struct shared_rings *rs)
{
	if (!rs)
		return;
	for (uint32_t i = 0; i < PRELOAD_MAX_RINGS; i++) {
		free(rs->rings[i].record);
		free(rs->rings[i].stack.image);
	}
	free(rs);
}
