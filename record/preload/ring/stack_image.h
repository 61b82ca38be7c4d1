/* stack_image.h - a thread's stack and registers, of which a preloaded library tells the changes
 *
 * What it tells is hostile: each change is checked before it is made.
 */
#ifndef RECORD_STACK_IMAGE_H
#define RECORD_STACK_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"
#include "record/libpreload/ring.h"

/* All zero, except for the image: nothing is known. */
struct stack_image {
	struct preload_image known;
	uint64_t sp, saved[PRELOAD_NR_SAVED];
	uint64_t end;	/* of the stack at the event before */
	uint8_t *image; /* of SHARED_IMAGE bytes, the owner's */
};

#define SHARED_IMAGE (2 * PRELOAD_WINDOW) /* twice the same, so that each stack is in one piece */

/* A stack at an event. */
struct shared_view {
	const uint8_t
		*bytes; /* from the stack pointer on; valid until the next event of its ring */
	uint32_t len;
	uint64_t kept_from; /* from this address on as at the ring's event before; 0: none */
};

/* Forget all but the image's place. */
void stack_image_clear(struct stack_image *s);

/*
 * Make the changes that @e tells, a record of @len bytes of which the start was checked, and put
 * the registers into *@event, and the stack, of at most @limit bytes, into *@view.  False: it is no
 * such record.
 */
bool stack_image_apply(struct stack_image *s, const struct preload_alloc *e, uint32_t len,
		       uint32_t limit, struct event_alloc *event, struct shared_view *view);

#endif
