/* seize.h - trace processes so that their children are held before their first instruction */
#ifndef RECORD_SEIZE_H
#define RECORD_SEIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A thread that the caller traces was seen to stop, with this wait status: what is to become of it?
 */
typedef void seize_stop_fn(void *ctx, pid_t tid, int status);

/* What a process that is traced stops for; bits. */
enum seize_what {
	SEIZE_CHILDREN = 1, /* at each fork, clone and exec; and what it starts is traced, too, and
			       stops before its first instruction */
	SEIZE_EXIT = 2,	    /* at its end, when its memory is still there */
};

/* Let the child @pid, which is traced and stopped, run, but stay its tracer: it stops for @what. */
void seize_started(pid_t pid, unsigned int what);

/*
 * The same for all threads of process @pid, which run and go on running.  Whatever they start after
 * the return is traced: each is made to stop once, because a fork under way decided at its
 * beginning whether the child is.  One that does not stop within 250 ms (in an uninterruptible
 * wait) is let be.  Other stops that are seen meanwhile are given to @stopped.
 *
 * Without SEIZE_CHILDREN in @what nothing is made to stop, and only the main thread is traced.
 *
 * Returns 0, or -errno when the main thread cannot be traced.
 */
int seize_running(pid_t pid, unsigned int what, seize_stop_fn *stopped, void *ctx);

/* Programs on their way from exec(2) to their start, from system call to system call.  All of this
 * is for the thread that traces them.  Nothing is written to their memory: the end of that thread
 * sets them free. */

struct to_start_entry;

/* All zero: nobody is.  Its owner frees v. */
struct to_start {
	struct to_start_entry *v;
	size_t nr, room;
};

/* From now on follow @pid, which is stopped at its exec; where there is no room for it, it is not
 * followed. */
void to_start_add(struct to_start *s, pid_t pid);

/* Follow @pid no more. */
void to_start_remove(struct to_start *s, pid_t pid);

/* How the stopped @pid is to go on, for ptrace(2). */
int to_start_request(const struct to_start *s, pid_t pid);

/* @pid has stopped at a system call.  Returns true if its libraries are mapped, or false after it
 * was followed too long: then it is followed no more. */
bool to_start_is_there(struct to_start *s, pid_t pid);

struct helper;

/* A process that is stopped for the moment in which its probes are put in.  Neither its parent nor
 * a shell's job control sees it: no signal is sent, and nothing is to be waited for but by us.
 * Should this process end meanwhile, the kernel lets it go. */
struct stop {
	bool seized;	       /* we are its tracer, or the helper is, and not rid of it yet */
	bool stopped;	       /* and it has stopped */
	int sig;	       /* that is to be delivered to it when it goes on; 0: none */
	struct helper *helper; /* that traces it; NULL: we do */
};

/* Stop @pid.  It may come to a stop only later (it may wait in the kernel for a child of vfork):
 * this call waits some milliseconds at most.  @helper, which may be NULL, is asked where we are not
 * allowed to.  Returns 0, or -errno: it is gone, or another traces it. */
int stop_begin(struct stop *h, pid_t pid, struct helper *helper);

/* Let @pid go, if it has been stopped by now; else this is to be called again.  Once it is done
 * nothing happens. */
void stop_end(struct stop *h, pid_t pid);

#endif
