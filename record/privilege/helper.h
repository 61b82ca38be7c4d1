/* helper.h - a process that keeps the privileges which the recorder gives up
 *
 * The recorder reads what others wrote: ELF files, the ring, the target's memory.  It does so
 * without privileges.  What takes them while it records (to look at a program begun by exec, and to
 * put probes into it) the helper does for it, for the recorded processes alone and in no other way
 * than these calls.  It ends with the recorder.
 */
#ifndef RECORD_HELPER_H
#define RECORD_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct helper; /* opaque; for one thread */
struct mlk_mapping;

#define HELPER_MAX_READ	  4096 /* bytes of memory that can be requested at once */
#define HELPER_MAX_PROBES 64   /* of one link */
#define HELPER_WHY	  256  /* of a reason */

/* Of /proc/PID; the last two as O_PATH, to be examined but not read. */
enum helper_file {
	HELPER_MAPS,
	HELPER_AUXV,
	HELPER_STATUS,
	HELPER_ROLLUP, /* smaps_rollup */
	HELPER_SMAPS,
	HELPER_MEM,
	HELPER_PAGEMAP,
	HELPER_EXE,
	HELPER_ROOT,
	HELPER_NR_FILES
};

/* A thread of a process: the process itself where its main thread lives. */
struct helper_task {
	pid_t pid, task;
};

/* What the helper may do, and for which processes: it refuses all else.  All is borrowed. */
struct helper_opts {
	const pid_t *pids; /* the processes that it may touch, */
	size_t nr;
	bool follow;		/* their children, */
	dev_t memory_dev;	/* with @follow processes that have mapped this file, */
	ino_t memory_inode;	/* if it is not 0, */
	const int *programs;	/* the loaded BPF programs that it may put into them, */
	const int *program_fds; /* each of them there, where its number is another */
	size_t nr_programs;
	uint64_t caps; /* and the capabilities that it keeps, bits 1 << CAP_... */
};

/* What runs in the helper: answers requests from @socket until its other end is closed. */
typedef void helper_serve_fn(int socket, const struct helper_opts *opts);

/* Probes of one process on one file. */
struct helper_link {
	struct helper_task of;
	int program; /* of helper_opts.programs */
	int file;    /* descriptor of the file */
	bool is_return, multi, session;
	bool keeps;  /* no program, but a breakpoint that stays for others, as long
			as its thread lives */
	uint32_t nr; /* 1 unless @multi */
	const uint64_t *offsets, *cookies;
};

/* Start it, by fork(2), while this process has one thread only: what another one has locked just
 * then would stay so.  *@out waits for helper_begin(), and is stopped with helper_stop(); it is
 * NULL on failure.  Returns 0 or -errno. */
int helper_start(struct helper **out, helper_serve_fn *serve);

/* From here on it serves requests, and has no more privileges than it needs for those.  Returns 0
 * or -errno. */
int helper_begin(struct helper *h, const struct helper_opts *opts);

/* What follows returns what the call itself would: -errno, or what it says here.  -EPERM: the
 * helper refuses, or is gone. */

/* Open a file of /proc.  Returns the descriptor. */
int helper_open(struct helper *h, const struct helper_task *of, enum helper_file file);

/* Open the file that is mapped at @m.  Returns the descriptor. */
int helper_open_mapped(struct helper *h, const struct helper_task *of, const struct mlk_mapping *m);

/* Copy what /proc says of the system call in which the thread @of->task waits, at most @size bytes
 * with their end.  Returns 0. */
int helper_syscall(struct helper *h, const struct helper_task *of, char *text, size_t size);

/* What the kernel keeps for the process and gives back to it: an array of struct mlk_root in a file
 * without a name.  Returns the descriptor. */
int helper_roots(struct helper *h, const struct helper_task *of);

/* As freeze_take(), with the first @room bytes of @fd. */
int helper_freeze(struct helper *h, const struct helper_task *of, int fd, uint64_t room);

/* Copy @len bytes of memory, HELPER_MAX_READ at most.  Returns 0. */
int helper_read(struct helper *h, const struct helper_task *of, uint64_t addr, void *to,
		size_t len);

/* Put probes in.  Returns the link's descriptor. */
int helper_link(struct helper *h, const struct helper_link *link);

/* As sideband_open_event(), for the thread @of->task. */
int helper_listen(struct helper *h, const struct helper_task *of, int cpu);

/* As stop_begin(): returns 0, and whether it has stopped in *@stopped. */
int helper_hold(struct helper *h, pid_t pid, bool *stopped);

/* As stop_end(): has it been let go? */
bool helper_let_go(struct helper *h, pid_t pid);

/* Send a recorded process a signal that ends it in order: SIGTERM or SIGHUP.  Returns 0. */
int helper_signal(struct helper *h, pid_t pid, int sig);

/* As inject_remove(), with the reason in @why, HELPER_WHY bytes.  *@cost is a struct inject_cost,
 * of @bytes.  -EPIPE: the helper has ended. */
int helper_eject(struct helper *h, pid_t pid, void *cost, size_t bytes, char *why);

/* As inject_add(), of @library, a struct inject_library of @library_bytes, HELPER_MAX_READ at most.
 * The rest is as with helper_eject(). */
int helper_inject(struct helper *h, pid_t pid, const void *library, size_t library_bytes,
		  void *cost, size_t bytes, char *why);

/* End it, and release @h; NULL is allowed. */
void helper_stop(struct helper *h);

#endif
