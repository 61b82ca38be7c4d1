/* joined_stack.c - see joined_stack.h */
#include "record/kernel/joined_stack.h"

#include <string.h>

#include "record/kernel/kmem_users.h"
#include "unwind/dwunw_event.h"

#define STACK_AT 0xffffc90000000000ull /* where the trace has stacks of the kernel alone */

/* Where struct pt_regs has the registers that the image expects: KERNEL_IMAGE_REGS. */
static const uint8_t order[KERNEL_IMAGE_REGS] = {0,
						 1,
						 2,
						 3, /* r15 to r12 */
						 6,
						 7,
						 8,
						 9, /* r11 to r8 */
						 KMEM_REGS_FP,
						 14,
						 13,
						 5, /* rbp, rdi, rsi, rbx */
						 11,
						 12,
						 10,
						 KMEM_REGS_PC}; /* rcx, rdx, rax, rip */

static void put(struct joined_stack *to, const void *from, size_t len)
{
	memcpy(to->bytes + to->len, from, len);
	to->len += (uint32_t)len;
}

static void put_kernel(struct joined_stack *to, const struct kernel_stack *stack, uint64_t last)
{
	for (size_t i = 0; i < stack->nr; i++) {
		uint64_t pc = i + 1u == stack->nr ? last : stack->pcs[i];

		if (i)
			put(to, &pc, sizeof(pc));
		else
			to->pc = pc;
	}
}

/* Where the bytes run out, the stack may go on, or may have ended before. */
static uint32_t end_of(const struct kmem_user *user)
{
	bool more = user->regs[KMEM_REGS_SP] % 4096 + user->len > 4096;

	/* Else the second page could not be read: mostly, there is none. */
	return DWUNW_EVENT_STACK_UNBOUNDED | (more ? DWUNW_EVENT_STACK_LIMIT : 0);
}

void joined_stack_make(struct joined_stack *joined, const struct kernel_stack *stack,
		       const struct kmem_user *user)
{
	static const uint64_t end;

	joined->pc = joined->len = joined->flags = 0;
	joined->sp = STACK_AT;
	if (user && stack->entry && stack->nr) {
		put_kernel(joined, stack, stack->entry);
		for (size_t i = 0; i < KERNEL_IMAGE_REGS; i++)
			put(joined, &user->regs[order[i]], sizeof(uint64_t));
		joined->sp = user->regs[KMEM_REGS_SP] - joined->len;
		put(joined, kmem_users_stack(user), user->len);
		joined->flags = end_of(user);
		return;
	}
	put_kernel(joined, stack, stack->nr ? stack->pcs[stack->nr - 1] : 0);
	/* A return address of 0 ends the stack, unless there is more of it than was kept. */
	if (stack->what & KERNEL_STACK_CUT)
		joined->flags = DWUNW_EVENT_STACK_LIMIT;
	else
		put(joined, &end, sizeof(end));
}
