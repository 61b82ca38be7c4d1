/* stop_all.h - stop all threads of a process, read their registers, and let them go */
#ifndef RECORD_STOP_ALL_H
#define RECORD_STOP_ALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct crew;
struct stop_thread;

/* The threads that the caller, a thread, has stopped; all zero: none. */
struct stop_all {
	struct crew *crew; /* who stops them; NULL: the caller alone.  Set before. */
	int awake;	   /* as awake_begin() */
	struct stop_thread *v;
	size_t nr, room;
	size_t stopped;	  /* of these; the others have ended */
	pid_t most;	  /* the greatest number */
	bool has_workers; /* there are some of the kernel's own, which are not stopped */
};

/* Look at the @i-th thread, which has stopped, as the thread @who of the crew; others are visited
 * at the same time, and those that it has started just now may still run.  Behind the last one of
 * @who, @i is @s->nr.  Returns 0, or what stop_all_begin() returns at once then. */
typedef int stop_all_visit_fn(void *ctx, const struct stop_all *s, size_t i, unsigned int who);

/* A crew, to be freed, that stops the threads of @pid fast; NULL: the caller alone is as fast. */
struct crew *stop_all_crew(pid_t pid);

/* Stop all threads of @pid that execute its code, also those that are started meanwhile, and have
 * @look, if that is not NULL, called of each with @ctx.  It is let go with stop_all_end(), or by
 * the end of the threads that have stopped it.  Returns 0; -ETIMEDOUT: one has not stopped within a
 * quarter of a second, or waits in the kernel for longer, and then none was stopped; what @look
 * returned; or -errno of ptrace(2). */
int stop_all_begin(struct stop_all *s, pid_t pid, stop_all_visit_fn *look, void *ctx);

/* The registers of the @i-th of @s->nr threads, which the calling thread has stopped.  Returns 0,
 * -ESRCH: it has ended, or was stopped by another of the crew; or -errno. */
int stop_all_regs(const struct stop_all *s, size_t i, pid_t *tid, struct user_regs_struct *regs);

/* Let all go that have stopped, with the signals that they were about to take.  Returns the longest
 * time that one of them was stopped, in nanoseconds. */
uint64_t stop_all_end(struct stop_all *s);

#endif
