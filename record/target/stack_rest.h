/* stack_rest.h - what lies above a stack that was cut because it was too long for an event
 *
 * A reader continues such a stack with what the trace has of the thread's stack from before.  Where
 * a thread came so deep in one step that a part in between is in no event, the recorder reads it
 * from the thread's memory, some milliseconds later, and puts it into the trace.
 */
#ifndef RECORD_STACK_REST_H
#define RECORD_STACK_REST_H

#include <stdbool.h>
#include <stdint.h>

#include "format/writer.h"
#include "record/target/target.h"

/* Of one thread: what a reader of the trace has of its stack, [lo, hi).  All zero: nothing. */
struct stack_rest {
	uint64_t lo, hi;
	uint64_t top; /* where its stack begins: the end of one that was not cut; 0: not known */
	uint64_t read_ns; /* when it was read last, or could not be; as times of events */
	bool whole;	  /* hi is where the stack begins, */
	bool was_read;	  /* and part of that was read */
	bool looked;	  /* for the top of a main thread's stack */
};

/* How often the stacks of all threads of a recording may be read.  All zero: none was. */
struct stack_rest_pace {
	uint64_t due_ns;
};

/*
 * @ev, an MLK_ALLOC of the thread @r of @t, is next in the trace.  If its stack was cut, with
 * DWUNW_EVENT_STACK_LIMIT, and a reader has nothing to continue it, or only what was read a while
 * ago, put what lies above it into the trace before: at most 2 MiB, and as @pace allows.  The
 * thread goes on meanwhile.  What cannot be read, or is of other calls by now, is left out: the
 * stack is then told as cut.
 *
 * Returns 0 or what the writer returned.
 */
int stack_rest_before(struct stack_rest *r, struct stack_rest_pace *pace, const struct target *t,
		      const struct mlk_event *ev, struct mlk_writer *writer);

#endif
