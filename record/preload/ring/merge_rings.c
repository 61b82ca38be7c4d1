/* merge_rings.c - hostile bytes into records, in order */
#include "record/preload/ring/merge_rings.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/event.h"
#include "record/base/clock.h"
#include "record/preload/ring/shared_ring_state.h"

#define TAIL_BYTES	8192				 /* room is given back in such lots */
#define RECORD_ROOM(rs) ((rs)->opts.sizes.ring_size / 2) /* bytes of a record, at most */

/* An event that takes so long to be written never will be: the thread left it by a jump.  Where
 * threads wait for room they do so for a second, as a rule. */
#define MAX_BUSY_NS	    5000000000u
#define MAX_BUSY_PRESSED_NS 500000000u

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

static struct preload_ring *shared(const struct shared_rings *rs, const struct shared_ring *r)
{
	return &rs->opts.memory->rings[r - rs->rings];
}

static const uint8_t *data_of(const struct shared_rings *rs, const struct shared_ring *r)
{
	return (const uint8_t *)rs->opts.memory +
	       preload_ring_offset(&rs->opts.sizes, (uint32_t)(r - rs->rings));
}

static uint64_t size_of(const struct shared_rings *rs, const struct shared_ring *r)
{
	return preload_ring_size(&rs->opts.sizes, (uint32_t)(r - rs->rings));
}

static void tell_tail(struct shared_rings *rs, struct shared_ring *r)
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

/* What follows in @r cannot be determined any more. */
static void skip_all(struct shared_rings *rs, struct shared_ring *r)
{
	rs->bad++;
	r->tail = r->limit;
	r->stack.known = (struct preload_image){0, 0};
	tell_tail(rs, r);
}

/* Step over the record @start of @len bytes if it is no event.  False: it may be one. */
static bool step_over(struct shared_rings *rs, struct shared_ring *r,
		      const union shared_start *start, uint32_t len)
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
static bool fetch(struct shared_rings *rs, struct shared_ring *r)
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
		r->record->head.type = start.record.type; /* which was examined */
		r->time += r->record->head.after;
		r->len = len;
		return true;
	}
	if (r->tail != r->told_tail)
		tell_tail(rs, r);
	return false;
}

/* A thread has taken this ring. */
static bool adopt(struct shared_rings *rs, struct shared_ring *r, uint64_t owner)
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
	if (rs->opts.thread_in)
		r->tid = rs->opts.thread_in(rs->opts.ctx, r->tgid, r->tid);
	stack_image_clear(&r->stack);
	r->based = r->named = false;
	r->busy_since_ns = 0;
	return true;
}

/* Did its thread run a program that another has followed, or that has ended? */
static bool is_old(const struct shared_rings *rs, const struct shared_ring *r)
{
	uint32_t slot = slot_of(r->program);

	return rs->opts.has_ended(rs->opts.ctx, slot) ||
	       r->program !=
		       __atomic_load_n(&rs->opts.memory->processes[slot].program, __ATOMIC_ACQUIRE);
}

/* It was being written at the last look already: for too long? */
static bool is_left(const struct shared_rings *rs, struct shared_ring *r)
{
	uint64_t now = clock_now_ns();

	if (!r->busy_since_ns)
		r->busy_since_ns = now;
	return now - r->busy_since_ns >
	       (shared_rings_pressed(rs) ? MAX_BUSY_PRESSED_NS : MAX_BUSY_NS);
}

/* How far one ring is filled, and up to which time. */
static void look_at(struct shared_rings *rs, struct shared_ring *r, uint64_t calm)
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
	if (busy && busy < calm && !is_old(rs, r) && !is_left(rs, r))
		calm = busy;
	if (calm > r->safe)
		r->safe = calm;
}

uint64_t shared_rings_look(struct shared_rings *rs, uint64_t now, uint64_t margin)
{
	uint64_t safe = now - margin;

	rs->nr_active = 0;
	for (uint32_t i = 0; i < rs->opts.sizes.nr_rings; i++) {
		struct shared_ring *r = &rs->rings[i];
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

/* The ring whose event is next, and in *@other the time of the next one in another ring. */
static struct shared_ring *earliest(const struct shared_rings *rs, uint64_t *other)
{
	struct shared_ring *best = NULL;

	*other = UINT64_MAX;
	for (uint32_t i = 0; i < rs->nr_active; i++) {
		struct shared_ring *r = rs->active[i];

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

static void deactivate(struct shared_rings *rs, const struct shared_ring *r)
{
	uint32_t i = 0;

	while (rs->active[i] != r)
		i++;
	rs->active[i] = rs->active[--rs->nr_active];
}

int shared_rings_consume(struct shared_rings *rs, uint64_t until)
{
	uint64_t other;
	struct shared_ring *r;
	int err = 0;

	while (!err && (r = earliest(rs, &other)) != NULL && r->time < until) {
		do {
			err = decode_event(rs, r);
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
		const struct shared_ring *r = &rs->rings[i];

		if (r->tid && __atomic_load_n(&shared(rs, r)->head, __ATOMIC_SEQ_CST) - r->tail >=
				      size_of(rs, r) / 2)
			return true;
	}
	return false;
}

bool shared_rings_all_taken(const struct shared_rings *rs)
{
	for (uint32_t i = 0; i < rs->opts.sizes.nr_rings; i++)
		if (!rs->rings[i].tid)
			return false;
	return true;
}

void shared_rings_give_back(struct shared_rings *rs, bool (*is_gone)(uint32_t tgid, uint32_t tid))
{
	for (uint32_t i = 0; i < rs->opts.sizes.nr_rings; i++) {
		struct shared_ring *r = &rs->rings[i];

		if (!r->tid || r->len || (!is_old(rs, r) && !is_gone(r->tgid, r->tid)))
			continue;
		/* It may have written more before it ended. */
		if (__atomic_load_n(&shared(rs, r)->head, __ATOMIC_ACQUIRE) != r->tail)
			continue;
		r->tid = 0;
		__atomic_store_n(&shared(rs, r)->owner, 0, __ATOMIC_RELEASE);
	}
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
