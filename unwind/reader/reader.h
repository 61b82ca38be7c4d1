/* reader.h - the parts of the stack reader: what /proc tells, copying, and stopping a thread */
#ifndef DWUNW_READER_H
#define DWUNW_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/dwunw.h"
#include "unwind/elf/ranges.h"

/* A process that is read. */
struct dwunw_stack_reader {
	pid_t pid;
	int pid_fd;  /* readable once the process has ended; -1: the kernel has no such thing */
	int proc_fd; /* its directory in /proc, which is never that of a later process */
	int lock_fd; /* keeps other readers away */
	uint32_t flags;
	size_t max_stack;	   /* bytes */
	uint8_t *bytes;		   /* the copied stack, mapped, room for max_stack */
	struct dwunw_ranges areas; /* mappings that could hold a stack, ascending */
	uint64_t start_stack; /* of the main thread: what is above are arguments; 0: not known */
};

/* reader_proc.c */

/* Read the small file @name below directory @dir_fd into @text, NUL-terminated.  Returns its length
 * or -errno; -ESRCH and -ENOENT when process or thread are gone. */
ssize_t dwunw_proc_read(int dir_fd, const char *name, char *text, size_t room);

/* The process's start in clock ticks since boot, 0 when it cannot be read. */
uint64_t dwunw_proc_start_time(int proc_fd);

/* Read the mappings, and where the main thread's stack ends.  Returns 0 or -ENOMEM; without the
 * right to read them there are none. */
int dwunw_proc_areas(struct dwunw_stack_reader *r);

/* Whether thread @tid is there, and has not ended. */
bool dwunw_proc_alive(const struct dwunw_stack_reader *r, pid_t tid);

/* Why reading the process, or its thread @tid, was denied. */
enum dwunw_denied dwunw_proc_denied(int proc_fd, pid_t tid);

/* The tracer of thread @tid; 0: none, or it is gone. */
pid_t dwunw_proc_tracer(int proc_fd, pid_t tid);

/* What /proc/PID/task/TID/syscall says of a thread that waits. */
struct dwunw_waiting {
	long nr; /* of the system call; -1: it waits in none (a page fault, a stop) */
	uint64_t arg[6];
	uint64_t sp, pc;
	uint64_t runs[3]; /* what grows when the thread runs: time on a CPU, waiting, times */
};

/* Returns 0, -EAGAIN (it runs), DWUNW_ERR_GONE or DWUNW_ERR_ATTACH_DENIED. */
int dwunw_proc_waiting(const struct dwunw_stack_reader *r, pid_t tid, struct dwunw_waiting *w);

/* reader_copy.c */

/* Copy the stack of thread @tid from the stack pointer in copy->regs, and set copy->regs.flags.
 * -EAGAIN: it is in no mapping that is known; with @unbounded it is copied anyway.  Returns 0,
 * -EAGAIN, DWUNW_ERR_GONE or DWUNW_ERR_ATTACH_DENIED. */
int dwunw_copy_stack(struct dwunw_stack_reader *r, struct dwunw_stack_copy *copy, bool unbounded);

/* Copy a thread that waits in the kernel, without stopping it.  Returns as
 * dwunw_stack_reader_read(). */
int dwunw_copy_waiting(struct dwunw_stack_reader *r, struct dwunw_stack_copy *copy);

/* Does the thread wait in a system call that it would be seen to be stopped in? Then it is not
 * stopped, unless that was requested. */
bool dwunw_is_spared(const struct dwunw_stack_reader *r, pid_t tid);

/* reader_stop.c */

/* Stop a thread, copy it, let it go.  Returns as dwunw_stack_reader_read(), or -EINTR: it is to be
 * spared. */
int dwunw_copy_stopped(struct dwunw_stack_reader *r, struct dwunw_stack_copy *copy);

#endif
