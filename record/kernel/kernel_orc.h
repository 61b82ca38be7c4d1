/* kernel_orc.h - the tables of the kernel's own unwinder: how each place in the code lays out its
 * stack
 *
 * ORC: Documentation/arch/x86/orc-unwinder.rst and arch/x86/include/asm/orc_types.h of Linux.  The
 * tables are read out of the running kernel, a few words for each question.
 */
#ifndef RECORD_KERNEL_ORC_H
#define RECORD_KERNEL_ORC_H

#include <stdbool.h>
#include <stdint.h>

#include "record/kernel/kallsyms.h"
#include "record/kernel/kmem_probes.h"

struct kernel_orc; /* opaque */

/* What the code at a place says of its stack. */
struct kernel_orc_frame {
	enum {
		KERNEL_ORC_CALL,  /* a function's frame */
		KERNEL_ORC_REGS,  /* registers that an interrupt or a system call saved */
		KERNEL_ORC_END,	  /* the outermost one */
		KERNEL_ORC_OTHER, /* what takes more than these rules */
	} kind;
	/* Of KERNEL_ORC_CALL: where the CFA is. */
	enum {
		KERNEL_ORC_FROM_SP,
		KERNEL_ORC_FROM_FP,
		KERNEL_ORC_AT_FP, /* in memory, where the frame pointer and the offset point to */
	} cfa;
	int32_t offset; /* bytes */
	int32_t saved;	/* where the caller's frame pointer is: bytes, 0: it is unchanged */
	bool saved_at;	/* from the frame pointer, not from the CFA; then saved says nothing */
};

/* Of the running kernel: @probes read its memory, @names says where; both are borrowed until
 * kernel_orc_free().  *@out is NULL on failure.  Returns 0, -ENOMEM, or -ENOTSUP: this kernel has
 * no such tables, or others. */
int kernel_orc_new(struct kernel_orc **out, const struct kmem_probes *probes,
		   const struct kallsyms *names);

/* Read the frame at @pc, an address in the code.  Returns 0 or -errno. */
int kernel_orc_find(struct kernel_orc *o, uint64_t pc, struct kernel_orc_frame *frame);

/* Release @o; NULL is allowed. */
void kernel_orc_free(struct kernel_orc *o);

#endif
