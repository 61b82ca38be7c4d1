/* threads.h - the names of the threads that were seen, and what they do when a recording begins */
#ifndef RECORD_THREADS_H
#define RECORD_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/writer.h"
#include "record/target/stack_rest.h"
#include "record/target/target.h"

struct thread_entry;

/* The threads of a process that were seen: a table, owned, in which nr of room slots are used. */
struct threads {
	struct thread_entry *slots; /* open addressing by tid */
	size_t nr, room;
	struct thread_entry *at; /* of the tid seen last, or NULL */
	uint32_t last;		 /* tid seen last: events come in runs of one thread */
	bool unwritten;		 /* there are names that the trace does not have yet */
	bool all; /* the names of those that are not seen are wanted, too: they are counted */
};

/* Note that @tid exists.  Returns 0 or -ENOMEM. */
int threads_see(struct threads *ts, uint32_t tid);

/* What a reader of the trace has of the stack of @tid, not 0; valid until the next call.  NULL:
 * there is no memory. */
struct stack_rest *threads_rest(struct threads *ts, uint32_t tid);

/* Note its name.  Returns 0 or -ENOMEM. */
int threads_name(struct threads *ts, uint32_t tid, const char *name);

/* From now on the names of all threads are wanted: read those of @t that there are now.  Returns 0
 * or -ENOMEM. */
int threads_see_all(struct threads *ts, const struct target *t);

/* Its name as noted last, valid until the next call; "": not known. */
const char *threads_find(const struct threads *ts, uint32_t tid);

/* Note that @tid says of itself that this is its name: that counts where /proc has none any more.
 * Returns 0 or -ENOMEM. */
int threads_claim(struct threads *ts, uint32_t tid, const char *name);

/* Note that thread @tid of @ts was started by thread @parent of @from (perhaps the same), which are
 * those of process @of: it has its name, and nothing of a thread that had the same number before.
 * Returns 0 or -ENOMEM. */
int threads_inherit(struct threads *ts, uint32_t tid, struct threads *from, const struct target *of,
		    uint32_t parent);

/* A reader has no stacks of these threads any more: the process runs another program. */
void threads_forget_stacks(struct threads *ts);

/* All names and stacks are new to the trace. */
void threads_begin_trace(struct threads *ts);

/* Put the names that are new into the trace; those not told are read from /proc/PID/task of @t.
 * Returns 0, -ENOMEM, or what the writer returned. */
int threads_write(struct threads *ts, const struct target *t, struct mlk_writer *w);

/* Forget all threads. */
void threads_release(struct threads *ts);

/* What it cost the target that the stacks of its threads were read. */
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
