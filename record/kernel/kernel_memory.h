/* kernel_memory.h - how much memory the machine has, each second */
#ifndef RECORD_KERNEL_MEMORY_H
#define RECORD_KERNEL_MEMORY_H

#include "record/trace/memory_list.h"

/* All zero: no sample was taken yet. */
struct kernel_memory {
	struct memory_list list;
	uint64_t due_ns;
};

/* Sample the machine's memory, if that is due at @now_ns.  Returns 0 or as mlk_writer_memory(). */
int kernel_memory_sample(struct kernel_memory *memory, struct mlk_writer *w, uint64_t now_ns);

/* Take a last sample, and write all to @w.  Returns 0 or as mlk_writer_memory(). */
int kernel_memory_finish(struct kernel_memory *memory, struct mlk_writer *w);

#endif
