/* ring.h - the events that the BPF programs left in their two rings, in the order of their making
 *
 * Like libbpf's ring_buffer, but that it merges the two (union event_head in bpf/event.h), and
 * gives room back in lots: each time the reader says how far it has come, every CPU that writes an
 * event must fetch that anew, which costs the target more than all else it does for a free.
 */
#ifndef RECORD_RING_H
#define RECORD_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_PARTS 2

struct ring;

/* A BPF_MAP_TYPE_RINGBUF of @size bytes. */
struct ring_map {
	int fd;
	size_t size;
};

/* How far the writers had come in both. */
struct ring_mark {
	unsigned long end[RING_PARTS];
};

/* Takes the @size bytes at @data, which are gone when it returns.  Not 0: this one was taken, and
 * no more are wanted now. */
typedef int (*ring_event_fn)(void *ctx, void *data, size_t size);

/* Read @maps, the first ring and the second, whose descriptors stay the caller's.  @event may be
 * NULL up to ring_set_consumer().  Returns 0 and *@out, for ring_close(), or negative errno. */
int ring_open(const struct ring_map maps[RING_PARTS], ring_event_fn event, void *ctx,
	      struct ring **out);

/* Before the first ring_consume(): @event is called, with @ctx. */
void ring_set_consumer(struct ring *r, ring_event_fn event, void *ctx);

/* Give all events that are complete to event().  Returns 0, or what that returned. */
int ring_consume(struct ring *r);

/* Note up to where room was taken; and was event() given all that lay before that? */
void ring_mark(const struct ring *r, struct ring_mark *mark);
bool ring_has_passed(const struct ring *r, const struct ring_mark *mark);

/* Bytes that were given to event(), ever, with the kernel's headers. */
unsigned long ring_taken(const struct ring *r);

/* NULL is allowed. */
void ring_close(struct ring *r);

#endif
