/* sideband.h - the kernel's notices of new executable mappings, names of threads, exec and fork
 *
 * From a perf event that counts nothing (PERF_COUNT_SW_DUMMY), on each thread and CPU.  What a
 * process forks is listened to as well, from its first instruction on.
 */
#ifndef RECORD_SIDEBAND_H
#define RECORD_SIDEBAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/trace.h"
#include "record/target/target.h"

struct sideband; /* opaque */

/* A new thread, or a process if pid is not its parent's. */
struct sideband_fork {
	pid_t pid, tid;
	pid_t parent_pid, parent_tid;
	uint64_t time_ns; /* CLOCK_MONOTONIC, as all times here */
};

/* What the notices are handed to, those of a process listened to and of all that it forked, in the
 * order of their times. */
struct sideband_sink {
	void (*mapped)(void *ctx, pid_t pid, uint64_t time_ns, const struct mlk_mapping *m);
	void (*named)(void *ctx, pid_t pid, uint32_t tid, const char *name);
	void (*execed)(void *ctx, pid_t pid, uint64_t time_ns);
	void (*forked)(void *ctx, const struct sideband_fork *fork);
	/* The main thread of @pid has ended, or the kernel tells nothing of it any more: it began a
	 * program that has privileges which it had not itself. */
	void (*left)(void *ctx, pid_t pid);
	void (*lost)(void *ctx, uint64_t nr);
	void *ctx;
};

/* On success *@out, which listens to no process yet, is released with sideband_free(); on failure
 * it is NULL.  Returns 0 or -ENOMEM. */
int sideband_open(struct sideband **out);

/* Begin to listen to all threads of @pid, and to those it starts later.  A process forked by one
 * that is listened to is already.  Returns 0 or -errno. */
int sideband_add(struct sideband *s, pid_t pid);

/* Listen to all threads of @t again, which sideband_sink.left was called for, though it goes on; by
 * the helper where that is not allowed.  Returns 0 or -errno. */
int sideband_add_again(struct sideband *s, const struct target *t);

/* Of the processes that were added again, listen no more to those, and to what they forked, of
 * which @is_heard is false. */
void sideband_keep(struct sideband *s, bool (*is_heard)(void *ctx, pid_t pid), void *ctx);

/* Open such an event of the thread @tid, for the time it is on @cpu.  Returns the descriptor, or
 * -errno: -ENODEV: the CPU is offline. */
int sideband_open_event(pid_t tid, int cpu);

/* Descriptors that become readable with a notice: the @i-th, or -1 when there are no more. */
int sideband_fd(const struct sideband *s, int i);

/* Hand all notices of before this call to @sink. */
void sideband_read(struct sideband *s, const struct sideband_sink *sink);

/* Listen no more; NULL is allowed. */
void sideband_free(struct sideband *s);

#endif
