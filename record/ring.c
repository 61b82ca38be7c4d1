/* ring.c - the reader's side of the kernel's BPF ring buffer
 *
 * What is mapped is told in the kernel's Documentation/bpf/ringbuf.rst and kernel/bpf/ringbuf.c: a
 * page with the reader's position; then, not to be written, one with the writers' position, and the
 * data twice in a row, so that no record is cut.  Positions only grow.  A record is a header of 8
 * bytes, of which the first 4 are its length with two flags, and its data, padded to 8 bytes.
 */
#include "record/ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Room is given back when so much of the ring was read; a part of a small ring. */
#define LOT_BYTES  (256u << 10)
#define LOTS_LEAST 16u

struct ring {
	unsigned long *reader;
	const unsigned long *writers;
	uint8_t *data;
	size_t size, page;
	unsigned long lot; /* bytes */
	ring_event_fn event;
	void *ctx;
	unsigned long at; /* what lies before was given to event() */
	int stop;	  /* what event() returned last */
};

int ring_open(int fd, size_t size, ring_event_fn event, void *ctx, struct ring **out)
{
	struct ring *r = calloc(1, sizeof(*r));
	void *map;
	int err;

	if (!r)
		return -ENOMEM;
	*r = (struct ring){.size = size, .event = event, .ctx = ctx};
	r->page = (size_t)sysconf(_SC_PAGESIZE);
	r->lot = size / LOTS_LEAST < LOT_BYTES ? size / LOTS_LEAST : LOT_BYTES;
	map = mmap(NULL, r->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		goto fail;
	r->reader = map;
	r->at = *r->reader;
	map = mmap(NULL, r->page + 2 * size, PROT_READ, MAP_SHARED, fd, (off_t)r->page);
	if (map == MAP_FAILED)
		goto fail;
	r->writers = map;
	r->data = (uint8_t *)map + r->page;
	*out = r;
	return 0;
fail:
	err = -errno;
	ring_close(r);
	return err;
}

static uint32_t header_at(const struct ring *r, unsigned long at)
{
	const uint32_t *header = (const void *)(r->data + (at & (r->size - 1)));

	return __atomic_load_n(header, __ATOMIC_ACQUIRE);
}

static void give_back(struct ring *r)
{
	__atomic_store_n(r->reader, r->at, __ATOMIC_RELEASE);
}

/* Give the record at @r->at to @r->event.  Returns false when it is not complete yet. */
static bool take(struct ring *r)
{
	uint32_t header = header_at(r, r->at), len = header & ~BPF_RINGBUF_DISCARD_BIT;

	if (header & BPF_RINGBUF_BUSY_BIT)
		return false;
	if (len == header)
		r->stop = r->event(r->ctx, r->data + (r->at & (r->size - 1)) + BPF_RINGBUF_HDR_SZ,
				   len);
	r->at += (BPF_RINGBUF_HDR_SZ + len + 7) & ~7ul;
	if (r->at - *r->reader >= r->lot)
		give_back(r);
	return true;
}

int ring_consume(struct ring *r)
{
	unsigned long end;
	bool complete = true;

	r->stop = 0;
	while (complete && !r->stop &&
	       r->at < (end = __atomic_load_n(r->writers, __ATOMIC_ACQUIRE)))
		while (complete && !r->stop && r->at < end)
			complete = take(r);
	give_back(r);
	return r->stop;
}

unsigned long ring_taken(const struct ring *r)
{
	return r->at;
}

unsigned long ring_end(const struct ring *r)
{
	return __atomic_load_n(r->writers, __ATOMIC_ACQUIRE);
}

void ring_close(struct ring *r)
{
	if (!r)
		return;
	if (r->reader)
		munmap(r->reader, r->page);
	if (r->writers)
		munmap((void *)(uintptr_t)r->writers, r->page + 2 * r->size);
	free(r);
}
