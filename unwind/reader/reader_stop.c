/* reader_stop.c - the stack reader: hold a thread by ptrace while it is copied
 *
 * The tracer is a thread made for each read.  A thread that is traced but has not stopped yet (it
 * may be in an uninterruptible wait) cannot be detached from; but when its tracer ends, the kernel
 * sets it free at once, whatever state it is in.  So nothing ever hangs on us, even when this
 * process is killed.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <elf.h>

#include "unwind/reader/reader.h"

#define STOP_TIMEOUT_NS	   200000000u
#define STOP_SPINS	   20	 /* without sleeping, some microseconds: most threads stop then */
#define STOP_SLEEP_NS	   10000 /* after them; to yield would give a whole time slice away */
#define PTRACE_EVENT_STOP_ 128	 /* of linux/ptrace.h, which does not go with sys/ptrace.h */

/* What the tracer thread is to do, and what came of it. */
struct stop {
	struct dwunw_stack_reader *reader;
	struct dwunw_stack_copy *copy;
	bool unbounded; /* copy a stack in no known mapping, too */
	bool attached;	/* the thread is let go by the end of the tracer only */
	pid_t tracer;
	int err;
};

static uint64_t clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Fill @regs from what the kernel gives of a 64-bit thread. */
static void regs_from_user(struct dwunw_regset *regs, const struct user_regs_struct *user)
{
	const uint64_t in_order[DWUNW_MAX_ARCH_REGS] = {
		user->rax, user->rdx, user->rcx, user->rbx, user->rsi, user->rdi,
		user->rbp, user->rsp, user->r8,	 user->r9,  user->r10, user->r11,
		user->r12, user->r13, user->r14, user->r15, user->rip,
	};

	dwunw_regset_prepare(regs, in_order, DWUNW_MAX_ARCH_REGS, 0);
}

/* The signal to hand on when the thread, which has stopped, is let go: one that was just being
 * delivered; 0 when it stopped because we asked, or because its process is stopped.  -1: it has not
 * stopped. */
static int pending_signal(pid_t tid)
{
	siginfo_t info;

	if (ptrace(PTRACE_GETSIGINFO, tid, NULL, &info))
		return -1;
	return info.si_code >> 8 == PTRACE_EVENT_STOP_ ? 0 : info.si_signo;
}

/* Wait until the thread has stopped; *sig is as from pending_signal(). */
static int wait_for_stop(const struct stop *h, int *sig)
{
	const struct timespec pause = {0, STOP_SLEEP_NS};
	const uint64_t end = clock_now_ns() + STOP_TIMEOUT_NS;
	pid_t tid = h->copy->tid;

	for (unsigned int i = 0; i < STOP_SPINS || clock_now_ns() < end; i++) {
		siginfo_t info = {0};

		/* Without WEXITED: its end is reported to its parent, which may be this process. */
		if (waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOHANG | __WALL | __WNOTHREAD))
			return DWUNW_ERR_GONE;
		/* Another thread of ours may have waited for any child, and been given this. */
		if (info.si_pid == tid || i > STOP_SPINS) {
			*sig = pending_signal(tid);
			if (*sig >= 0)
				return 0;
		}
		if (i < STOP_SPINS)
			continue;
		if (!dwunw_proc_alive(h->reader, tid))
			return DWUNW_ERR_GONE;
		nanosleep(&pause, NULL);
	}
	return -ETIMEDOUT;
}

static int copy_held(struct stop *h)
{
	struct user_regs_struct user;
	struct iovec to = {&user, sizeof(user)};

	if (ptrace(PTRACE_GETREGSET, h->copy->tid, NT_PRSTATUS, &to))
		return DWUNW_ERR_GONE;
	/* A 32-bit register set is shorter; in a 64-bit one the segment says the mode. */
	if (to.iov_len != sizeof(user) || user.cs != 0x33)
		return DWUNW_ERR_ARCH;
	regs_from_user(&h->copy->regs, &user);
	return dwunw_copy_stack(h->reader, h->copy, h->unbounded);
}

static void *hold_and_copy(void *arg)
{
	struct stop *h = arg;
	pid_t tid = h->copy->tid;
	uint64_t start;
	int sig;

	h->tracer = gettid();
	prctl(PR_SET_TIMERSLACK,
	      1); /* nanosecond: of this thread; or each sleep takes 50 us more */
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
		h->err = errno == ESRCH ? DWUNW_ERR_GONE : DWUNW_ERR_ATTACH_DENIED;
		return NULL;
	}
	h->attached = true;
	/* From now on the number cannot be given to another thread: is it the one meant? */
	if (!dwunw_proc_alive(h->reader, tid)) {
		h->err = DWUNW_ERR_GONE;
		return NULL;
	}
	/* Looked at again, for making this thread took time in which that one could begin to wait.
	 */
	if (dwunw_is_spared(h->reader, tid)) {
		h->err = -EINTR;
		return NULL;
	}
	start = clock_now_ns();
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL)) {
		h->err = DWUNW_ERR_GONE;
		return NULL;
	}
	h->err = wait_for_stop(h, &sig);
	if (h->err)
		return NULL;
	h->err = copy_held(h);
	/* When this fails the thread was killed; the end of the tracer does the rest. */
	if (!ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)sig))
		h->attached = false;
	h->copy->stopped_ns += clock_now_ns() - start;
	return NULL;
}

/* The end of a thread can be seen a little before it lets go of what it traced. */
static void await_release(const struct stop *h)
{
	const struct timespec pause = {0, STOP_SLEEP_NS};
	const uint64_t end = clock_now_ns() + STOP_TIMEOUT_NS;

	while (dwunw_proc_tracer(h->reader->proc_fd, h->copy->tid) == h->tracer &&
	       clock_now_ns() < end)
		nanosleep(&pause, NULL);
}

/* Do as @h says in a thread of its own, which gets no signals. */
static int run_tracer(struct stop *h)
{
	sigset_t all, old;
	pthread_t tracer;
	int err;

	h->attached = false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&tracer, NULL, hold_and_copy, h);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -EAGAIN;
	pthread_join(tracer, NULL);
	if (h->attached)
		await_release(h);
	return h->err;
}

int dwunw_copy_stopped(struct dwunw_stack_reader *r, struct dwunw_stack_copy *copy)
{
	struct stop h = {.reader = r, .copy = copy};
	int err = run_tracer(&h);

	if (err != -EAGAIN || h.err != -EAGAIN)
		return err;
	/* A stack made since the mappings were read.  They are read while the thread runs. */
	err = dwunw_proc_areas(r);
	if (err)
		return err;
	h.unbounded = true;
	return run_tracer(&h);
}
