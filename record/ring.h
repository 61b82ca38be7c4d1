/* ring.h - the events that the BPF programs left in their ring, in the order of their making
 *
 * Like libbpf's ring_buffer, but that it gives room back in lots: each time the reader says how far
 * it has come, every CPU that writes an event must fetch that anew, which costs the target more
 * than all else it does for a free.
 */
#ifndef MLEAK_RECORD_RING_H
#define MLEAK_RECORD_RING_H

#include <stddef.h>
#include <stdint.h>

struct ring;

/* Takes the @size bytes at @data, which are gone when it returns.  Not 0: this one was taken, and
 * no more are wanted now. */
typedef int (*ring_event_fn)(void *ctx, void *data, size_t size);

/* Read the map @fd, a BPF_MAP_TYPE_RINGBUF of @size bytes, which stays the caller's.  Returns 0 and
 * *@out, for ring_close(), or negative errno. */
int ring_open(int fd, size_t size, ring_event_fn event, void *ctx, struct ring **out);

/* Give all events that are complete to event().  Returns 0, or what that returned. */
int ring_consume(struct ring *r);

/* Positions: up to where event() was given all, and up to where room was taken. */
unsigned long ring_taken(const struct ring *r);
unsigned long ring_end(const struct ring *r);

/* NULL is allowed. */
void ring_close(struct ring *r);

#endif
