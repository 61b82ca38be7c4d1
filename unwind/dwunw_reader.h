/* dwunw_reader.h - part of dwunw.h: registers and stacks of a running process */
#ifndef DWUNW_PART_READER_H
#define DWUNW_PART_READER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "dwunw_capture.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The stack reader: registers and stacks of the threads of a running process, as dwunw_capture()
 * takes them.
 *
 * A thread is stopped by ptrace for the time in which its registers and its stack are copied, some
 * ten microseconds unless the stack is deep, and goes on as if nothing had been; one that was
 * stopped (SIGSTOP) stays so.  A thread that waits in a system call that would fail with EINTR by
 * that (see DWUNW_READER_ALWAYS_STOP) is read without being stopped.
 *
 * The caller's process gets a SIGCHLD for each stop, as ptrace has it.  A thread of the caller that
 * waits at that time for any child, or for the target if that is its child, may be given the stop
 * (WIFSTOPPED), which is to be ignored.
 */
struct dwunw_stack_reader; /* opaque: one process; one thread of the caller at a time */

/* Bits of dwunw_stack_reader_opts.flags. */
enum dwunw_reader_flag {
	/* Never stop a thread, never use ptrace.  Only threads that wait in the kernel can be read,
	 * and only some of their registers. */
	DWUNW_READER_NO_STOP = 1 << 0,
	/* Stop also threads in system calls that fail with EINTR when a thread is stopped in them:
	 * epoll_wait, sigtimedwait, semop, io_getevents, io_uring_enter, and those on sockets,
	 * which do so if they have a timeout.  All registers are known then. */
	DWUNW_READER_ALWAYS_STOP = 1 << 1,
};

/* Why the kernel does not let us read a process. */
enum dwunw_denied {
	DWUNW_DENIED_NOT,	    /* nothing was denied */
	DWUNW_DENIED_OTHER_USER,    /* of another user, and no CAP_SYS_PTRACE */
	DWUNW_DENIED_YAMA,	    /* kernel.yama.ptrace_scope */
	DWUNW_DENIED_TRACED,	    /* under a debugger or another tracer */
	DWUNW_DENIED_NOT_DUMPABLE,  /* prctl(PR_SET_DUMPABLE, 0), or it changed its rights */
	DWUNW_DENIED_KERNEL_THREAD, /* has no memory of its own */
	DWUNW_DENIED_ZOMBIE,	    /* it, or its main thread, has ended and was not waited for */
	DWUNW_DENIED_UNKNOWN,	    /* another security module, seccomp, ... */
	DWUNW_DENIED_NR,
};

/* Static text: "it belongs to another user ...". */
const char *dwunw_denied_text(enum dwunw_denied why);

/* How a process is to be read. */
struct dwunw_stack_reader_opts {
	uint32_t flags;		   /* enum dwunw_reader_flag */
	size_t max_stack;	   /* bytes of a stack to copy at most; 0: 8 MiB */
	uint64_t start_time;	   /* clock ticks since boot, field 22 of /proc/PID/stat: only the
				      process that started then is meant.  0: any */
	enum dwunw_denied *denied; /* set by dwunw_stack_reader_attach(); NULL: not wanted */
};

/*
 * Get ready to read the threads of process @pid; nothing is stopped yet.  There is one reader of a
 * process at a time, in all processes of this machine that see it under the same /proc.
 *
 * @opts: copied; NULL is all zeros.
 *
 * On success *out is released with dwunw_stack_reader_detach(); on failure it is NULL.
 * Returns 0, -ENOMEM, -EINVAL (@pid is not positive, not a process but another's thread, or the
 * caller's own), -EBUSY (there is a reader of it), DWUNW_ERR_ATTACH_DENIED, DWUNW_ERR_GONE (no such
 * process), or the -errno of opening its files in /proc (-EMFILE, ...).
 */
int dwunw_stack_reader_attach(pid_t pid, const struct dwunw_stack_reader_opts *opts,
			      struct dwunw_stack_reader **out);

/*
 * The thread ids of the process: the first @max of them in @tids.
 * Returns their number, which may be more than @max, or DWUNW_ERR_GONE, or another -errno.
 */
int dwunw_stack_reader_threads(struct dwunw_stack_reader *reader, pid_t *tids, size_t max);

/* Bits of dwunw_stack_copy.flags. */
enum dwunw_copy_flag {
	/* The thread was not stopped, because it waited in the kernel.  Only its stack pointer, its
	 * pc and the arguments of its system call are in regs.known. */
	DWUNW_COPY_NOT_STOPPED = 1 << 0,
	/* The thread ran while it was copied: what was unwound from it is to be marked partial. */
	DWUNW_COPY_TORN = 1 << 1,
};

/* One thread at one moment. */
struct dwunw_stack_copy {
	pid_t tid;
	uint32_t flags;		  /* enum dwunw_copy_flag */
	struct dwunw_regset regs; /* flags: what of enum dwunw_event_flag is true of the stack */
	struct dwunw_stack stack; /* from the stack pointer up.  The bytes belong to the reader and
				     are valid until the next call with it */
	uint64_t stopped_ns;	  /* at most so long was the thread stopped, nanoseconds */
	enum dwunw_denied denied; /* on DWUNW_ERR_ATTACH_DENIED: why */
};

/*
 * Copy the registers and the stack of thread @tid, to the end of its mapping (of the main thread:
 * to where main's arguments begin) or opts.max_stack.
 *
 * Returns 0, -ENOMEM, -EAGAIN (it runs and is not to be stopped, or no thread could be made to stop
 * it), -ETIMEDOUT (it did not stop in 200 ms and is not to be read otherwise), DWUNW_ERR_GONE,
 * DWUNW_ERR_ATTACH_DENIED (a debugger came after attach), or DWUNW_ERR_ARCH (it is in 32-bit mode).
 * In any case *copy is filled; on failure regs and stack are empty.
 */
int dwunw_stack_reader_read(struct dwunw_stack_reader *reader, pid_t tid,
			    struct dwunw_stack_copy *copy);

/*
 * Read all threads, each once: @visit is called with @arg, the result of reading a thread and its
 * copy; what it returns other than 0 ends the reading and is returned.  Threads that ended
 * meanwhile are left out. Returns 0, what @visit returned, -ENOMEM, or DWUNW_ERR_GONE when the
 * process has ended.
 */
int dwunw_stack_reader_read_all(struct dwunw_stack_reader *reader,
				int (*visit)(void *arg, int err,
					     const struct dwunw_stack_copy *copy),
				void *arg);

/* Release @reader; NULL is allowed. */
void dwunw_stack_reader_detach(struct dwunw_stack_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
