/* shared_stack.h - a thread's stack and registers, of which a preloaded library tells the changes
 *
 * What it tells is hostile: each change is checked before it is made.
 */
#ifndef RECORD_SHARED_STACK_H
#define RECORD_SHARED_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"
#include "record/preload/ring.h"

/* All zero, but for the image: nothing is known. */
struct shared_stack {
	struct preload_image known;
	uint64_t sp, saved[PRELOAD_NR_SAVED];
	uint8_t *image; /* of PRELOAD_WINDOW bytes, the owner's */
};

/* Forget all but the image's place. */
void shared_stack_clear(struct shared_stack *s);

/*
 * Make the changes that @e tells, a record of @len bytes of which the start was checked, and put
 * the registers and the stack, at most @limit bytes of it, into *@event, which has room for
 * EVENT_STACK_ALIGN more.  False: it is no such record.
 */
bool shared_stack_take(struct shared_stack *s, const struct preload_alloc *e, uint32_t len,
		       uint32_t limit, struct event_alloc *event);

#endif
