/* tracer_state.h - struct tracer, for the files that implement tracer.h */
#ifndef RECORD_TRACER_STATE_H
#define RECORD_TRACER_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "array.h"
#include "record/ptrace/launch.h"
#include "record/ptrace/seize.h"
#include "record/ptrace/tracer.h"

/* How far the command is, or what is asked for. */
enum state { STATE_STARTING, STATE_HELD, STATE_RUNS, STATE_OVER };

/* In the order of arrival.  All zero: empty. */
struct tracer_list {
	struct tracer_event *v;
	size_t nr, room;
};

/* What the thread that traces and the recorder share. */
struct tracer {
	pthread_t thread;
	pthread_mutex_t lock; /* of all below, but what is marked */
	pthread_cond_t started;
	enum state state;
	struct tracer_list events, orders; /* to and from the recorder; an order is TRACER_START or
					      not: how to let go */
	int events_fd, orders_fd;	   /* eventfds */
	bool released;			   /* the command was let run */
	bool joined;			   /* the thread was; not for that */
	bool unprivileged;		   /* is it requested? */
	bool waited;			   /* for the command */
	int status;			   /* then */
	int result, ended;		   /* of launch_start() */
	pid_t pid;			   /* the command */
	unsigned int what;		   /* bits of enum seize_what, set before the thread runs */
	char **argv;		  /* of the command, set before the thread runs; NULL: none */
	struct launch launch;	  /* of it, likewise */
	pid_t asked;		  /* to be attached to; 0: done, with the outcome in result */
	int signal_fd;		  /* the thread's own, */
	struct to_start to_start; /* and this */
};

/* Wake who waits for @fd. */
static inline void ring_bell(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
		return; /* it rings already */
}

/* It was heard. */
static inline void silence(int fd)
{
	uint64_t count;

	if (read(fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
		return; /* it did not ring */
}

/* Put @event behind the others.  False: no memory. */
static inline bool push_event(struct tracer_list *l, struct tracer_event event)
{
	if (grow_array(&l->v, l->nr, &l->room, sizeof(*l->v)))
		return false;
	l->v[l->nr++] = event;
	return true;
}

#endif
