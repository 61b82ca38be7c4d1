/* snapshot.h - several passes through a process's memory, by a thread of their own
 *
 * Nothing of the process is stopped, unless that is asked for.  A pointer that moves while a pass
 * goes on may be in none of the places where the pass looks; so there are several, which follow
 * each other.
 */
#ifndef RECORD_REACH_SNAPSHOT_H
#define RECORD_REACH_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "format/writer.h"
#include "record/reach/task_regs.h"
#include "record/target/target.h"

struct reach_snapshot; /* opaque; for one thread */

/* What a snapshot is to be. */
struct reach_opts {
	const struct target *target; /* borrowed, as long as the snapshot lives */
	uint32_t snapshot;	     /* its number; for a process greater than those before */
	uint32_t first_pass;	     /* number of its first pass, from 1 on */
	unsigned int passes;	     /* at least 1 */
	unsigned int most_passes;    /* where pointers move so fast that those are not enough */
	uint64_t apart_ns;	     /* from the end of a pass to the next one */
	struct task_regs *regs;	     /* borrowed likewise; NULL: not allowed */
	bool still;		     /* nothing of the process runs meanwhile */
	bool stop;		     /* stop it for a copy, of which a single pass is made */
	bool heap; /* the allocator's blocks are listed, too, as nobody has recorded them all */
};

/* What was seen of the memory. */
struct reach_result {
	unsigned int passes; /* that are in the trace */
	uint64_t words;	     /* of the last one */
	uint64_t read_bytes; /* that it read */
	uint64_t unread_bytes;
	uint64_t stopped_ns; /* how long it was stopped */
	int stop_err;	     /* why it was not, as it should have been: -errno, and -EFBIG as
				frozen_prepare() has it; 0 */
	int smaps_err;	     /* why where the memory is is not in the trace; 0: it is */
	int heap_err;	     /* why the allocator's blocks are not in the trace; 0: they are */
};

/* Begin.  On failure *@out is NULL.  Returns 0, -ENOMEM or -errno: the memory cannot be read. */
int reach_snapshot_begin(struct reach_snapshot **out, const struct reach_opts *opts);

/* A descriptor that is readable when reach_snapshot_step() has something to do; it may also be
 * called at any other time. */
int reach_snapshot_fd(const struct reach_snapshot *s);

/* Write what has come to @w.  Returns 1: there will be more; 0: it is over; -ESRCH: the process
 * ended before; or another -errno, or what the writer returned. */
int reach_snapshot_step(struct reach_snapshot *s, struct mlk_writer *w);

/* What came of it. */
const struct reach_result *reach_snapshot_result(const struct reach_snapshot *s);

/* End it, though it is not over; NULL is allowed. */
void reach_snapshot_end(struct reach_snapshot *s);

#endif
