/* event.h - what the BPF program sends: an allocation with its stack, or a free */
#ifndef EVENT_H
#define EVENT_H

#include <dwunw_event.h>

/* Bytes of a stack that are taken at most: a whole number of slices. */
#define STACK_ROOM (128 * DWUNW_CAPTURE_SLICE)

struct event {
	__u64 addr; /* the block */
	__u64 size; /* bytes asked for */
	__u64 is_free;
	struct dwunw_async_event capture; /* of a free: nothing */
};

#endif
