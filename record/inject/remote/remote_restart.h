/* remote_restart.h - how a system call goes on in which a thread was interrupted by our stop
 *
 * Most calls are made again by the kernel, and nothing is to be done but to leave it to it.  Some
 * return EINTR when a thread is stopped, as epoll_wait(2) does; and the signals that a call like
 * sigsuspend(2) had blocked are forgotten when a thread executes something else.
 */
#ifndef RECORD_REMOTE_RESTART_H
#define RECORD_REMOTE_RESTART_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/* What the kernel has in rax, negated, until it has decided whether the call is made again
 * (linux/errno.h). */
#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

/* A thread's system call as /proc tells it before the thread is stopped. */
struct remote_call_seen {
	bool known; /* it waits in one */
	long nr;    /* of the call */
	uint64_t args[6];
	uint64_t since_ns; /* CLOCK_MONOTONIC of its beginning; 0: not known */
	uint64_t seen_ns;  /* CLOCK_MONOTONIC of the look; 0: it was not looked for that */
	uint64_t sleeps;   /* how often the thread had waited for anything by then */
};

/* The call in which a thread was stopped. */
struct remote_restart {
	bool interrupted;  /* there is one that has not come to its end */
	bool lost;	   /* the kernel would let it fail though only our stop interrupted it */
	uint64_t blocked;  /* signals that it blocks, and that are not blocked behind it */
	uint64_t until_ns; /* CLOCK_MONOTONIC of its end, where that must be worked out; or 0 */
};

/* Read what call thread @tid of @pid waits in; but for since_ns and sleeps. */
void remote_call_look(struct remote_call_seen *seen, pid_t pid, pid_t tid);

/* As remote_call_look(), just before the thread is stopped.  Also find out when the call began, if
 * it has to be ended in time. */
void remote_call_look_last(struct remote_call_seen *seen, pid_t pid, pid_t tid);

/* Does the call take up at the same point when it is made again from its beginning? */
bool remote_call_is_same_again(long nr, const uint64_t args[6]);

/* Find out what call @tid of @pid, which is stopped with @regs and the mask @mask, was in.  @seen:
 * before it was stopped. */
void remote_restart_init(struct remote_restart *c, pid_t pid, pid_t tid,
			 const struct user_regs_struct *regs, uint64_t mask,
			 const struct remote_call_seen *seen);

/* The registers with which the thread makes the call again; @regs if it was in none. */
struct user_regs_struct remote_restart_again(const struct remote_restart *c,
					     const struct user_regs_struct *regs);

/* Must the thread make it again by these, as the kernel would not? */
static inline bool remote_restart_is_ours(const struct remote_restart *c)
{
	return c->lost || c->blocked;
}

/* Does signal @sig, which is about to be delivered to @tid of @pid, end the call?  It has a handler
 * then, and is not one that the call blocks. */
bool remote_restart_is_ended_by(const struct remote_restart *c, pid_t pid, pid_t tid, int sig);

#endif
