/* seize.h - trace processes so that their children are held before their first instruction */
#ifndef RECORD_SEIZE_H
#define RECORD_SEIZE_H

#include <sys/types.h>

/* A thread that the caller traces was seen to stop, with this wait status: what is to become of it?
 */
typedef void seize_stop_fn(void *ctx, pid_t tid, int status);

/* Let the child @pid, which is traced and stopped, run, but stay its tracer: it stops at each fork,
 * clone and exec, and what it starts is traced too and stops before its first instruction. */
void seize_started(pid_t pid);

/*
 * The same for all threads of process @pid, which run and go on running.  Whatever they start after
 * the return is traced: each is made to stop once, because a fork under way decided at its
 * beginning whether the child is.  One that does not stop within 250 ms (in an uninterruptible
 * wait) is let be.  Other stops that are seen meanwhile are given to @stopped.
 *
 * Returns 0, or -errno when the main thread cannot be traced.
 */
int seize_running(pid_t pid, seize_stop_fn *stopped, void *ctx);

#endif
