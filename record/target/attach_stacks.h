/* attach_stacks.h - what the threads of a process do when a recording of it begins */
#ifndef RECORD_ATTACH_STACKS_H
#define RECORD_ATTACH_STACKS_H

#include "format/writer.h"
#include "record/target/target.h"

/* What it cost the target. */
struct attach_stacks_cost {
	unsigned int threads; /* whose stacks were read */
	uint64_t stopped_ns;  /* together */
	uint64_t longest_ns;  /* one of them, at most */
};

/*
 * Write the registers and the stack of every thread of @t to @writer, as much of it as a trace can
 * hold, whatever the events are to carry.  Each thread is stopped for the time that the copying
 * takes.  What cannot be read is left out: a recording does without.  *@cost is set.  Returns 0 or
 * what the writer returned.
 */
int attach_stacks_write(const struct target *t, struct mlk_writer *writer,
			struct attach_stacks_cost *cost);

#endif
