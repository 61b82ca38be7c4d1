/* attach_stacks.h - what the threads of a process do when a recording of it begins */
#ifndef RECORD_SNAPSHOT_H
#define RECORD_SNAPSHOT_H

#include "format/writer.h"
#include "record/target/target.h"

/* What it cost the target. */
struct snapshot_cost {
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
int snapshot_write(const struct target *t, struct mlk_writer *writer, struct snapshot_cost *cost);

#endif
