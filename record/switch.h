/* switch.h - one recording in several traces, one after the other */
#ifndef RECORD_SWITCH_H
#define RECORD_SWITCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/output.h"
#include "record/session/session.h"

/* What the command line says: all zero, the recording is one trace. */
struct switch_opts {
	bool on;	  /* the traces are numbered, and SIGUSR2 begins another one */
	uint64_t bytes;	  /* so does this size of a trace, 0: no; */
	uint64_t time_ns; /* and that time, 0: no */
	uint64_t keep;	  /* only so many of the newest remain; 0: all */
};

struct switch_kept;

/* The traces of a recording, of which the newest is being written to @out. */
struct switcher {
	const struct switch_opts *opts;
	const struct output_opts *name;
	const struct session_opts *how;
	struct output *out;
	pid_t pid;	   /* for the names */
	uint64_t next_ns;  /* when the time is over */
	bool due;	   /* by a signal */
	uint64_t failures; /* to make the next one, since the last: all that comes goes to @out */
	uint64_t retry_ns; /* when it is tried again */
	struct switch_kept *kept;
	size_t nr_kept, room;
};

/* Is another trace to be begun at @now_ns, where the one that is written has @bytes? */
bool switch_is_due(const struct switcher *sw, uint64_t bytes, uint64_t now_ns);

/*
 * End the trace of @s, and begin the next one.  What was allocated before is of no account there,
 * as when mleak attaches to a process; only the processes, their modules and threads are in each.
 * Where no file can be made, a warning is logged, and the trace goes on; it is tried again after
 * some seconds, with the next number.  Errors of writing go to s->out.err.
 */
void switch_now(struct switcher *sw, struct session *s, enum mlk_end reason);

/* Release what @sw holds. */
void switch_release(struct switcher *sw);

#endif
