/* switch.h - one recording in several traces, one after the other */
#ifndef RECORD_SWITCH_H
#define RECORD_SWITCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/trace.h"
#include "record/output.h"

/* What the command line says: all zero, the recording is one trace. */
struct switch_opts {
	bool on;	  /* the traces are numbered, and SIGUSR2 begins another one */
	uint64_t bytes;	  /* so does this size of a trace, 0: no; */
	uint64_t time_ns; /* and that time, 0: no */
	uint64_t keep;	  /* only so many of the newest remain; 0: all */
};

struct switch_kept;

/* Who writes the traces. */
struct switch_writer {
	void *ctx;
	/* End the one that is written, and tell its size.  Returns 0 or an error. */
	int (*end)(void *ctx, enum mlk_end reason, uint64_t *bytes);
	/* Begin another one on @fd, an empty file. */
	void (*begin)(void *ctx, int fd);
};

/* The traces of a recording, of which the newest is being written to @out. */
struct switcher {
	const struct switch_opts *opts;
	const struct output_opts *name;
	struct output *out;
	pid_t pid;	  /* for the names */
	uint64_t next_ns; /* when the time is over */
	bool due;	  /* by a signal */
	struct switch_writer writer;
	uint64_t failures; /* to make the next one, since the last: all that comes goes to @out */
	uint64_t retry_ns; /* when it is tried again */
	struct switch_kept *kept;
	size_t nr_kept, room;
};

/* Is another trace to be begun at @now_ns, where the one that is written has @bytes? */
bool switch_is_due(const struct switcher *sw, uint64_t bytes, uint64_t now_ns);

/* Why it is due then. */
enum mlk_end switch_reason(const struct switcher *sw, uint64_t now_ns);

/*
 * End the trace that is written, and begin the next one.  What was allocated before is of no
 * account there, as when mleak attaches to a process; only the processes, their modules and threads
 * are in each. Where no file can be made, a warning is logged, and the trace goes on; it is tried
 * again after some seconds, with the next number.  What goes wrong with writing is for the writer
 * to keep.
 */
void switch_now(struct switcher *sw, enum mlk_end reason);

/* Release what @sw holds. */
void switch_release(struct switcher *sw);

#endif
