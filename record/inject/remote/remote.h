/* remote.h - system calls that a thread of another process executes, without harm to that process
 *
 * One thread is stopped by ptrace(2), for as long as there are calls to be done.  A thread of ours
 * traces it, and ends behind that.  If this process is killed meanwhile, the kernel lets the thread
 * go: a signal frame on its stack then brings it back to where it was.  A call with a relative
 * time, such as nanosleep(2), returns EINTR then: the kernel keeps no rest of it behind such a
 * frame.
 */
#ifndef RECORD_REMOTE_H
#define RECORD_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "record/inject/remote/remote_code.h"
#include "record/inject/remote/remote_restart.h"

/* Why a process cannot be changed, behind "it", where others say so, too. */
#define REASON_RUNS_ON                                                                     \
	"has a thread that does not stop: it waits for a device, a child of vfork() or a " \
	"processor"

/* All bytes that remote_put() has room for. */
#define REMOTE_PUT_MOST 4096

/* A thread that is held; its members are private. */
struct remote {
	pid_t pid, tid;
	_Atomic int *seizing; /* not 0 while a thread is about to be traced */
	bool stopped;	      /* false: it has not stopped since it was asked to */
	bool prepared; /* what belongs to the thread was put away, and its signals are blocked */
	bool called;   /* its last stop was at the end of a call */
	struct user_regs_struct was; /* its registers */
	uint64_t mask;		     /* its blocked signals */
	struct remote_code code;
	struct remote_restart restart;
	uint64_t frame;	   /* address of the signal frame: the stack pointer of calls */
	uint64_t lowest;   /* address of what was put there last */
	uint64_t since_ns; /* when it was asked to stop; 0: not yet */
};

/* Does calls by @r, in a thread of its own.  What it returns, 0 or -errno, remote_run() returns. */
typedef int remote_fn(struct remote *r, void *arg);

/*
 * Stop a thread of process @pid, the one that is disturbed least, have @run called with @arg, and
 * let the thread go on exactly where it was.  *@held_ns is how long that was.
 *
 * Returns what @run returned; or -errno, and *@why, static text that reads behind "it": -ENOTSUP or
 * -EBUSY, this process is not one for that, or not now; -ETIMEDOUT, no thread could be stopped in
 * time; -ESRCH, it has ended; -ENOMEM or -EAGAIN; or that of ptrace(2).  @run was not called then,
 * and the process is as it was.
 */
int remote_run(pid_t pid, remote_fn *run, void *arg, uint64_t *held_ns, const char **why);

/* Have system call @nr executed there.  The call must not wait.  One that the kernel asks to make
 * again is made again.  Returns 0 with what it returned, or its -errno, in *@result; -ESRCH: the
 * thread has ended; -EFAULT: it was not executed. */
int remote_call(struct remote *r, long nr, const uint64_t args[6], int64_t *result);

/* Copy @len bytes to where calls can point to, until @run returns: their address, a multiple of 16,
 * is in *@at.  Returns 0; -E2BIG, all of them would be more than REMOTE_PUT_MOST; or -errno. */
int remote_put(struct remote *r, const void *bytes, size_t len, uint64_t *at);

#endif
