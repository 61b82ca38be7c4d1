/* ring.c - the reader's side of the kernel's BPF ring buffers
 *
 * What is mapped is told in the kernel's Documentation/bpf/ringbuf.rst and kernel/bpf/ringbuf.c: a
 * page with the reader's position; then, not to be written, one with the writers' position, and the
 * data twice in a row, so that no record is cut.  Positions only grow.  A record is a header of 8
 * bytes, of which the first 4 are its length with two flags, and its data, padded to 8 bytes.
 *
 * How two rings are one order of events.  An event of the second ring, Y, was made after all of the
 * first ring up to its head's front: its writer asked for that before it took room.  An event G of
 * the first ring that begins there or later was not there yet when Y's writer asked; so Y goes
 * first, and else G does.  G after Y can only be known when Y is seen: the first ring's end is read
 * before the second one's, so what was made before anything that lies before the former lies before
 * the latter.
 */
#include "record/probe/ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/event.h"

/* Room is given back when so much of a ring was read; a part of a small ring. */
#define LOT_BYTES  (256u << 10)
#define LOTS_LEAST 16u

struct part {
	unsigned long *reader;
	const unsigned long *writers;
	uint8_t *data;
	size_t size, page;
	unsigned long lot; /* bytes */
	unsigned long at;  /* what lies before was given to event() */
	unsigned long end; /* what lies behind is examined later */
};

struct ring {
	struct part first, second;
	ring_event_fn event;
	void *ctx;
	int stop; /* what event() returned last */
};

static int part_open(struct part *p, const struct ring_map *m)
{
	void *map;

	p->size = m->size;
	p->page = (size_t)sysconf(_SC_PAGESIZE);
	p->lot = m->size / LOTS_LEAST < LOT_BYTES ? m->size / LOTS_LEAST : LOT_BYTES;
	map = mmap(NULL, p->page, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	p->reader = map;
	p->at = *p->reader;
	map = mmap(NULL, p->page + 2 * p->size, PROT_READ, MAP_SHARED, m->fd, (off_t)p->page);
	if (map == MAP_FAILED)
		return -errno;
	p->writers = map;
	p->data = (uint8_t *)map + p->page;
	return 0;
}

static void part_close(struct part *p)
{
	if (p->reader)
		munmap(p->reader, p->page);
	if (p->writers)
		munmap((void *)(uintptr_t)p->writers, p->page + 2 * p->size);
}

int ring_open(const struct ring_map maps[RING_PARTS], ring_event_fn event, void *ctx,
	      struct ring **out)
{
	struct ring *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	*r = (struct ring){.event = event, .ctx = ctx};
	err = part_open(&r->first, &maps[0]);
	if (!err)
		err = part_open(&r->second, &maps[1]);
	if (err)
		ring_close(r);
	else
		*out = r;
	return err;
}

void ring_set_consumer(struct ring *r, ring_event_fn event, void *ctx)
{
	r->event = event;
	r->ctx = ctx;
}

static unsigned long end_of(const struct part *p)
{
	return __atomic_load_n(p->writers, __ATOMIC_ACQUIRE);
}

/* The header of the record at @p->at. */
static uint32_t header_of(const struct part *p)
{
	const uint32_t *header = (const void *)(p->data + (p->at & (p->size - 1)));

	return __atomic_load_n(header, __ATOMIC_ACQUIRE);
}

/* The data of the record at @p->at. */
static uint8_t *data_of(const struct part *p)
{
	return p->data + (p->at & (p->size - 1)) + BPF_RINGBUF_HDR_SZ;
}

static void give_back(struct part *p)
{
	__atomic_store_n(p->reader, p->at, __ATOMIC_RELEASE);
}

/* Is there a record at @p->at, and complete? */
static bool is_complete(const struct part *p)
{
	return p->at < p->end && !(header_of(p) & BPF_RINGBUF_BUSY_BIT);
}

/* Give the record at @p->at, which is complete, to @r->event. */
static void take(struct ring *r, struct part *p)
{
	uint32_t header = header_of(p), len = header & ~BPF_RINGBUF_DISCARD_BIT;

	if (len == header)
		r->stop = r->event(r->ctx, data_of(p), len);
	p->at += (BPF_RINGBUF_HDR_SZ + len + 7) & ~7ul;
	if (p->at - *p->reader >= p->lot)
		give_back(p);
}

/* Is the second ring's next record, which is complete, older than the first ring's? */
static bool is_older(const struct ring *r)
{
	const union event_head *head = (const void *)data_of(&r->second);

	return header_of(&r->second) & BPF_RINGBUF_DISCARD_BIT ||
	       (int32_t)(head->front - event_front(r->first.at)) <= 0;
}

/* The ring whose record is next.  NULL: that is not complete, or there is none. */
static struct part *next_of(struct ring *r)
{
	struct part *first = &r->first, *second = &r->second;

	if (second->at < second->end) {
		if (!is_complete(second))
			return NULL;
		if (is_older(r))
			return second;
	}
	return is_complete(first) ? first : NULL;
}

/* Note what may be read now, in this order; see above.  Returns whether there is anything. */
static bool look(struct ring *r)
{
	r->first.end = end_of(&r->first);
	r->second.end = end_of(&r->second);
	return r->first.at < r->first.end || r->second.at < r->second.end;
}

int ring_consume(struct ring *r)
{
	unsigned long first, second;
	struct part *next;

	r->stop = 0;
	do {
		first = r->first.at;
		second = r->second.at;
		if (!look(r))
			break;
		while (!r->stop && (next = next_of(r)))
			take(r, next);
	} while (!r->stop && (r->first.at != first || r->second.at != second));
	give_back(&r->first);
	give_back(&r->second);
	return r->stop;
}

void ring_mark(const struct ring *r, struct ring_mark *mark)
{
	mark->end[0] = end_of(&r->first);
	mark->end[1] = end_of(&r->second);
}

bool ring_has_passed(const struct ring *r, const struct ring_mark *mark)
{
	return r->first.at >= mark->end[0] && r->second.at >= mark->end[1];
}

unsigned long ring_taken(const struct ring *r)
{
	return r->first.at + r->second.at;
}

void ring_close(struct ring *r)
{
	if (!r)
		return;
	part_close(&r->first);
	part_close(&r->second);
	free(r);
}
