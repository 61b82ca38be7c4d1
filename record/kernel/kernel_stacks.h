/* kernel_stacks.h - stacks of the kernel as a trace has them, and what they say of a block */
#ifndef RECORD_KERNEL_STACKS_H
#define RECORD_KERNEL_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/writer.h"
#include "record/kernel/kallsyms.h"
#include "record/kernel/kmem_probes.h"

/* Where the trace has the kernel's _text: where its linker put it, wherever it runs (x86-64,
 * arch/x86/Kconfig: PHYSICAL_START).  So two boots of one kernel have the same addresses. */
#define KERNEL_STACKS_TEXT 0xffffffff81000000ull

/* Where the trace has the code by which the kernel is entered from user space, with a rule of its
 * own: below all else that it maps. */
#define KERNEL_STACKS_ENTRY 0xffffffff80000000ull

/* Bits of kernel_stack.what. */
enum {
	KERNEL_STACK_SLAB = 1 << 0,	 /* pages for the slab allocator, whose objects count */
	KERNEL_STACK_INTERRUPT = 1 << 1, /* not on behalf of the thread that it interrupted */
	KERNEL_STACK_CUT = 1 << 2,	 /* it goes on */
};

/* A stack without the frames of the programs that took it. */
struct kernel_stack {
	bool known;
	uint8_t what;
	uint8_t nr;
	uint64_t entry; /* takes the place of the last one where frames of user space follow;
			   0: none do */
	uint64_t
		pcs[KMEM_STACK_DEPTH]; /* return addresses as the trace has them, innermost first */
};

struct kernel_stacks; /* opaque */

/* Stacks that @probes keeps, named by @names; both are borrowed until kernel_stacks_free().
 * @entries: frames of user space may follow.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int kernel_stacks_new(struct kernel_stacks **out, const struct kmem_probes *probes,
		      const struct kallsyms *names, bool entries);

/* Stack @number of a struct kmem_block; valid until kernel_stacks_free().  Without frames where
 * there is none. */
const struct kernel_stack *kernel_stacks_get(struct kernel_stacks *s, uint32_t number);

/* Which frames: all but those of the programs, or but what lies between them and what allocates. */
enum kernel_stacks_from { KERNEL_STACKS_TRACEPOINT, KERNEL_STACKS_CALLERS };

/* The return addresses of stack @number as they are in the kernel, innermost first.  Returns how
 * many. */
size_t kernel_stacks_pcs(const struct kernel_stacks *s, uint32_t number,
			 enum kernel_stacks_from from, uint64_t pcs[KMEM_STACK_DEPTH]);

/* Of which functions an image has the names: those that occurred are known in the end alone. */
enum kernel_stacks_names { KERNEL_STACKS_NO_NAMES, KERNEL_STACKS_USED, KERNEL_STACKS_ALL };

/* Write what is mapped where from @time_ns on, and the images of the kernel and its modules with
 * @names.  Returns 0 or the writer's error. */
int kernel_stacks_write(const struct kernel_stacks *s, struct mlk_writer *w,
			enum kernel_stacks_names names, uint64_t time_ns);

/* Frames left out because they lie in no function that /proc/kallsyms named. */
uint64_t kernel_stacks_unnamed(const struct kernel_stacks *s);

/* Release @s; NULL is allowed. */
void kernel_stacks_free(struct kernel_stacks *s);

#endif
