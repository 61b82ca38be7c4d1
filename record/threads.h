/* threads.h - the names of the threads that were seen */
#ifndef RECORD_THREADS_H
#define RECORD_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/writer.h"

struct thread_entry;

struct threads {
	struct thread_entry *slots; /* open addressing by tid */
	size_t nr, room;
	uint32_t last;	/* tid seen last: events come in runs of one thread */
	bool unwritten; /* there are names that the trace does not have yet */
};

/* Note that @tid exists.  Returns 0 or -ENOMEM. */
int threads_see(struct threads *ts, uint32_t tid);

/* Note its name.  Returns 0 or -ENOMEM. */
int threads_name(struct threads *ts, uint32_t tid, const char *name);

/* Note that @tid was started by thread @parent of @from, which may be @ts: it has its name, if that
 * is known, and none of a thread that had the same number before.  Returns 0 or -ENOMEM. */
int threads_inherit(struct threads *ts, uint32_t tid, const struct threads *from, uint32_t parent);

/* Put the names that are new into the trace; those not told are read from /proc/@pid/task.
 * Returns 0, -ENOMEM, or what the writer returned. */
int threads_write(struct threads *ts, pid_t pid, struct mlk_writer *w);

void threads_release(struct threads *ts);

#endif
