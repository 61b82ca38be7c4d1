/* freeze.h - stop a process for as long as a copy of its memory takes
 *
 * All of it is one call, so that whoever asks for it cannot leave the process stopped.  A thread of
 * its own traces those of the process: with its end, also by SIGKILL, the kernel sets them free.
 */
#ifndef RECORD_REACH_FREEZE_H
#define RECORD_REACH_FREEZE_H

#include <stdint.h>

#include "format/reach.h"
#include "record/target/target.h"

/* Pages that follow each other, in the copy. */
struct freeze_run {
	uint64_t start, bytes; /* in the process */
	uint64_t at;	       /* in the file */
	uint64_t unread;       /* bytes of it that could not be read: they are 0 */
};

/* What the file begins with: where in it the rest is. */
struct freeze_header {
	uint64_t begin_ns, end_ns;	 /* when it was stopped, CLOCK_MONOTONIC */
	uint64_t maps_at, maps_bytes;	 /* /proc/PID/maps, and a NUL */
	uint64_t runs_at, nr_runs;	 /* struct freeze_run, ascending */
	uint64_t threads_at, nr_threads; /* struct mlk_reach_thread */
};

/* Where the copy of the memory begins in the file. */
#define FREEZE_DATA 4096u

/* Stop all threads of @t, copy its writable memory and registers to the file @fd, whose first
 * @room bytes are for the header and the memory, and let it go on.  Returns 0; -ENOSPC: it has
 * more; -ETIMEDOUT: a thread did not stop; or another -errno: most often another process traces it.
 */
int freeze_take(const struct target *t, int fd, uint64_t room);

#endif
