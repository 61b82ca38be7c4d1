/* change.h - bytes of code in a process that runs, changed while none of its threads is there */
#ifndef RECORD_INJECT_CHANGE_H
#define RECORD_INJECT_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "record/target/maps.h"

#define INJECT_CHANGE  5    /* bytes: a jump */
#define INJECT_CHANGES 256u /* at most, at once */

/* How long threads stood for us; all zero: not yet. */
struct inject_cost {
	unsigned int threads, times; /* all, the last time; how often they did, in vain too */
	uint64_t longest_ns;	     /* one thread, the longest time */
	uint64_t held_ns;	     /* one thread for system calls, the longest time */
};

/* All threads stood once, for @ns at most. */
void inject_cost_add(struct inject_cost *cost, size_t threads, uint64_t ns);

/* Add to @cost what came @later. */
void inject_cost_join(struct inject_cost *cost, const struct inject_cost *later);

/* What stands at an address, and what is to stand there. */
struct inject_change {
	uint64_t at;
	uint8_t before[INJECT_CHANGE], after[INJECT_CHANGE];
};

/* A thread that is stopped, and what is on its stack: the words from its stack pointer on. */
struct inject_thread {
	pid_t tid;
	struct user_regs_struct regs;
	const uint64_t *words; /* borrowed for the call */
	size_t nr;
};

/* Is @t, which has stopped, where it must not be?  NULL: all threads have stopped now. */
typedef bool inject_is_there_fn(void *ctx, const struct inject_thread *t);

/* How it is done. */
struct inject_change_opts {
	pid_t pid;
	int mem;		 /* of /proc/PID/mem, open for writing */
	const struct maps *maps; /* all of its memory */
	/* Asked of each thread, besides; NULL: nothing is. */
	inject_is_there_fn *is_there;
	void *ctx;
};

/*
 * Stop all threads; where one is within bytes to be changed, or has come there by a signal handler
 * to which it returns, or @opts->is_there, let them go and try again for a while.  Then make all
 * of the @nr @changes, of INJECT_CHANGES.  With none, that all threads were elsewhere at one moment
 * is all that comes of it.
 *
 * What that costs is added to *@cost.  Returns 0; -EBUSY: a
 * thread stayed there; -ETIME: one did not stop; -EILSEQ: other bytes stand there than expected,
 * and nothing was changed; or -errno.
 */
int inject_change(const struct inject_change_opts *opts, const struct inject_change *changes,
		  size_t nr, struct inject_cost *cost);

#endif
