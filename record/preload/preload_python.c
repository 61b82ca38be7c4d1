/* preload_python.c - where a library finds the interpreter of its process */
#include "record/preload/backend.h"
#include "record/preload/process/facts.h"

/* The slot of process @pid, which runs; -1: it has none. */
static int slot_of(const struct preload *p, pid_t pid)
{
	for (uint32_t i = 0; i < PRELOAD_MAX_PROCESSES; i++)
		if (preload_process_in(p, i) == (uint32_t)pid)
			return (int)i;
	return -1;
}

uint32_t preload_program_of(const struct preload *p, pid_t pid)
{
	size_t bytes;
	const struct preload_header *memory = preload_shared_memory(p, &bytes);
	int slot = slot_of(p, pid);

	return slot < 0 ? 0 : __atomic_load_n(&memory->processes[slot].program, __ATOMIC_ACQUIRE);
}

void preload_set_python(struct preload *p, pid_t pid, uint32_t program,
			const struct event_python *at)
{
	int slot = slot_of(p, pid);

	if (slot >= 0)
		facts_tell_python(preload_facts(p), (uint32_t)slot, program, at);
}
