/* joined_stack.h - one stack out of the kernel's and that of the program it works for
 *
 * As doc/trace-format.md 4.12 has it: the return addresses of the kernel, the registers of user
 * space, and above them its stack, at its own address.  So they unwind like any other.
 */
#ifndef RECORD_JOINED_STACK_H
#define RECORD_JOINED_STACK_H

#include "record/kernel/kernel_image.h"
#include "record/kernel/kernel_stacks.h"

#define JOINED_STACK_MOST \
	((KMEM_STACK_DEPTH + 1 + KERNEL_IMAGE_REGS) * sizeof(uint64_t) + KMEM_USER_STACK)

/* The stack of an allocation, with the first return address apart. */
struct joined_stack {
	uint64_t pc, sp;
	uint32_t len;	/* bytes */
	uint32_t flags; /* enum dwunw_event_flag: why it may end early */
	uint8_t bytes[JOINED_STACK_MOST];
};

/* Put together @stack and what is copied of user space, @user, which may be NULL. */
void joined_stack_make(struct joined_stack *joined, const struct kernel_stack *stack,
		       const struct kmem_user *user);

#endif
