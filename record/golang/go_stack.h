/* go_stack.h - the stacks of a thread of a Go program, put together
 *
 * The unwinder walks up one stack.  So what a recorder got of several is laid one above the other:
 * the thread's own up to runtime.asmcgocall, then the goroutine's that this has left; where that
 * was called from C, its caller's again.  Nothing is guessed: each place is one that the runtime
 * noted, and is as it noted it, or the stack ends there.
 */
#ifndef RECORD_GO_STACK_H
#define RECORD_GO_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "record/golang/go_program.h"

struct go_stacks; /* opaque: goroutines' stacks that wait for their allocation; and one put together
		   */

/* New.  NULL: out of memory. */
struct go_stacks *go_stacks_new(void);

/* Release @gs; NULL is allowed. */
void go_stacks_free(struct go_stacks *gs);

/* Keep @part, a whole record of @size bytes, for the thread's next allocation.  What cannot be kept
 * is missed then.  False: it is no such record. */
bool go_stacks_keep(struct go_stacks *gs, const struct event_part *part, size_t size);

/* A stack: @len bytes from @sp on, with enum dwunw_event_flag. */
struct go_stack {
	uint64_t sp;
	const uint8_t *bytes;
	uint32_t len, flags;
};

/*
 * Join @s, the stack of an allocation of thread @id whose EVENT_PART was kept, with what that told,
 * of a process that runs @program.  At most @limit bytes.  *@s is then the new one, whose bytes are
 * valid until the next call.  False: it could not be; @s is as it was.
 */
bool go_stacks_join(struct go_stacks *gs, const struct go_program *program, uint64_t id,
		    uint32_t limit, struct go_stack *s);

#endif
