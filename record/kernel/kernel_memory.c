/* kernel_memory.c - see kernel_memory.h */
#include "record/kernel/kernel_memory.h"

#include "record/target/memory_read.h"

#define SAMPLE_NS 1000000000u /* from one sample to the next */

int kernel_memory_sample(struct kernel_memory *memory, struct mlk_writer *w, uint64_t now_ns)
{
	struct mlk_memory sample;

	if (now_ns < memory->due_ns)
		return 0;
	memory_read_machine(&sample);
	memory->due_ns = sample.time_ns + SAMPLE_NS;
	return memory_list_add(&memory->list, w, &sample);
}

int kernel_memory_finish(struct kernel_memory *memory, struct mlk_writer *w)
{
	int err = kernel_memory_sample(memory, w, UINT64_MAX);

	return err ? err : memory_list_flush(&memory->list, w);
}
