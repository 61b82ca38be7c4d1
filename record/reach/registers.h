/* registers.h - the registers of a process's threads, none of which is stopped for that */
#ifndef RECORD_REACH_REGISTERS_H
#define RECORD_REACH_REGISTERS_H

#include <stddef.h>

#include "format/reach.h"
#include "record/reach/roots.h"
#include "record/reach/task_regs.h"
#include "record/target/target.h"

/* Threads of a process; all zero: none. */
struct reach_threads {
	struct mlk_reach_thread *v;
	size_t nr, room;
};

/* Add all threads of @t to @threads.  By @regs all registers are known of those that wait, and a
 * sample of those that run; where it is NULL or has nothing of a thread, and that waits in a system
 * call, the arguments, the stack pointer and the program counter are.  By @regs also add the
 * threads' alternate stacks for signals to @roots; NULL: they are not asked for.  Returns 0,
 * -ENOMEM, or the -errno of opendir(3). */
int registers_read(const struct target *t, struct task_regs *regs, struct reach_threads *threads,
		   struct reach_roots *roots);

/* The same of one thread, from what /proc/PID/task/TID/syscall says: @text. */
void registers_parse(struct mlk_reach_thread *thread, const char *text);

/* @threads was read at several moments of a pass: a thread whose registers were always the same
 * is there once, and one that has moved with all that were seen, as one that ran.  Returns how
 * many threads there are of which nothing is known. */
size_t registers_settle(struct reach_threads *threads);

/* Forget them. */
void reach_threads_release(struct reach_threads *threads);

#endif
