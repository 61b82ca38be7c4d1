/* remote.c - see remote.h
 *
 * Whatever registers the thread has while it is held, they lead back: each call returns by way
 * of sigreturn(2), with the stack pointer at a signal frame of what the thread was doing.  Nothing
 * of that is executed unless this process is killed.  Otherwise the thread gets its registers back
 * at a stop like the first one, where the kernel has not yet decided how the system call goes on
 * that it had interrupted.
 */
#include "record/inject/remote/remote.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/base/clock.h"
#include "record/base/proc.h"
#include "record/inject/remote/remote_check.h"
#include "record/inject/remote/remote_frame.h"
#include "record/inject/remote/remote_thread.h"
#include "record/ptrace/awake.h"
#include "record/ptrace/join.h"

#define LIMIT_NS UINT64_C(5000000000)
#define YIELDS	 200   /* looks at a thread that is about to stop, before there are pauses */
#define WAIT_NS	 20000 /* such a pause */

#define AGAIN_NS 1000000 /* before a thread is looked for that makes a system call */

#define TRAP_FLAG 0x100 /* of eflags */

#define SYSCALL_STOP (SIGTRAP | 0x80) /* by PTRACE_O_TRACESYSGOOD */

static bool is_event(int status)
{
	return status >> 16;
}

static bool is_syscall(int status)
{
	return !is_event(status) && WSTOPSIG(status) == SYSCALL_STOP;
}

/* The signal that is about to be delivered at a stop; 0: none is. */
static int signal_of(int status)
{
	return is_event(status) || is_syscall(status) ? 0 : WSTOPSIG(status);
}

/* Not the thread that is held, but @tid has stopped or ended: one that was tried before, and is
 * traced until our thread ends.  It goes on.  False: it may be ours, by another number, for it has
 * begun a program. */
static bool is_another(const struct remote *r, pid_t tid, int status)
{
	if (tid <= 0 || tid == r->tid)
		return false;
	if (WIFSTOPPED(status) && is_event(status) && WSTOPSIG(status) != SIGTRAP)
		ptrace(PTRACE_LISTEN, tid, NULL, NULL); /* it stays stopped, as it should */
	else if (WIFSTOPPED(status))
		ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)signal_of(status));
	return proc_has_thread(r->pid, r->tid);
}

/* Wait for the next stop of the thread, until @until_ns, or 0: without an end.  Whoever waits for
 * its number alone is not woken when another thread begins a program: a main thread that ends so
 * has lost the number by the time that is told.
 *
 * Returns 0 with its wait status, -ETIMEDOUT, or -ESRCH: it has ended, and is not held any more. */
static int wait_stop(struct remote *r, uint64_t until_ns, int *status)
{
	for (unsigned int looks = 0;; looks++) {
		const int flags = (until_ns ? WNOHANG : 0) | __WALL | __WNOTHREAD;
		const pid_t got = waitpid(-1, status, flags);

		if ((got < 0 && errno == EINTR) || is_another(r, got, *status))
			continue;
		if (got == r->tid && WIFSTOPPED(*status))
			return 0;
		if (got) {
			r->tid = 0;
			return -ESRCH;
		}
		if (clock_now_ns() > until_ns)
			return -ETIMEDOUT;
		if (looks < YIELDS)
			sched_yield();
		else
			nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
	}
}

/* Let it go on by @request, with signal @sig if that is not 0, to its next stop. */
static int go_on(struct remote *r, enum __ptrace_request request, int sig, int *status)
{
	/* that fails of a thread that is being killed, which is waited for, too */
	ptrace(request, r->tid, NULL, (void *)(intptr_t)sig);
	return wait_stop(r, 0, status);
}

static int read_regs(pid_t tid, struct user_regs_struct *regs)
{
	struct iovec io = {regs, sizeof(*regs)};

	return ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) ? -errno : 0;
}

static int write_regs(pid_t tid, const struct user_regs_struct *regs)
{
	struct iovec io = {(void *)(uintptr_t)regs, sizeof(*regs)};

	return ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &io) ? -errno : 0;
}

static int write_mask(pid_t tid, uint64_t mask)
{
	return ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(mask), &mask) ? -errno : 0;
}

/* Wait for the stop that PTRACE_INTERRUPT makes, or one of job control, which is as good.  A signal
 * that comes first is delivered: the thread stops at its handler's beginning then. */
static int wait_interrupt(struct remote *r, uint64_t until_ns)
{
	int status, err;

	while (!(err = wait_stop(r, until_ns, &status)) && !is_event(status))
		ptrace(PTRACE_CONT, r->tid, NULL, (void *)(intptr_t)signal_of(status));
	return err;
}

/* Registers by which it goes back from where it is held. */
static struct user_regs_struct regs_back(const struct remote *r)
{
	struct user_regs_struct regs = r->was;

	regs.rip = r->code.pop;
	regs.rsp = r->frame + sizeof(uint64_t); /* the return address */
	regs.orig_rax = (unsigned long long)-1;
	regs.eflags &= ~(unsigned long long)TRAP_FLAG;
	return regs;
}

/* Put away what belongs to the thread, which has stopped.  Nothing is changed but behind its stack
 * until there is a frame to go back by. */
static int prepare(struct remote *r, const struct remote_call_seen *seen, const struct maps *maps,
		   const char **why)
{
	struct user_regs_struct back;
	int err = read_regs(r->tid, &r->was);

	if (!err && ptrace(PTRACE_GETSIGMASK, r->tid, (void *)sizeof(r->mask), &r->mask))
		err = -errno;
	if (err)
		return err;
	*why = "runs 32-bit code";
	if (!remote_is_64_bit(r->tid, &r->was))
		return -ENOTSUP;
	remote_restart_init(&r->restart, r->pid, r->tid, &r->was, r->mask, seen);
	err = remote_check(r->tid, &r->was, &r->code, maps, why);
	if (err)
		return err;
	*why = "makes no system calls, and only from Linux 5.13 on one knows whether it may be "
	       "interrupted elsewhere";
	err = remote_leave_sequence(r->tid, &r->was);
	if (err)
		return err;
	back = remote_restart_again(&r->restart, &r->was);
	*why = "has no room on its stack";
	err = remote_frame_write(r->tid, &back, r->mask, &r->code, &r->frame);
	if (err)
		return err;
	r->lowest = r->frame;
	*why = "cannot be changed";
	back = regs_back(r);
	err = write_regs(r->tid, &back);
	r->prepared = !err;
	return err ? err : write_mask(r->tid, remote_blocked(r->tid));
}

/*
 * Have the thread, which has its own mask again, make its call again.  Were it detached before
 * that, a signal could come in between, and not end the call; and at the call's beginning a
 * detachment is an interruption itself.  So it is left to run, until our thread ends.
 *
 * Returns true if it does, or has ended.  False: a signal has come first, in *@sig, or something
 * else, and it has stopped.
 */
static bool make_again(struct remote *r, int *sig)
{
	const struct user_regs_struct again = remote_restart_again(&r->restart, &r->was);
	int status;

	write_regs(r->tid, &again);
	if (go_on(r, PTRACE_SYSCALL, 0, &status))
		return true;
	if (is_syscall(status)) {
		ptrace(PTRACE_CONT, r->tid, NULL, NULL);
		return true;
	}
	*sig = signal_of(status);
	if (*sig && remote_restart_is_ended_by(&r->restart, r->pid, r->tid, *sig))
		write_regs(r->tid, &r->was);
	return false;
}

/* Let the thread go on, by its own registers if it has others. */
static void let_go(struct remote *r)
{
	int err = 0, sig = 0;
	bool runs = false;

	if (r->tid && !r->stopped)
		err = wait_interrupt(r, clock_now_ns() + LIMIT_NS);
	if (r->tid && r->called) {
		ptrace(PTRACE_INTERRUPT, r->tid, NULL, NULL);
		ptrace(PTRACE_CONT, r->tid, NULL, NULL);
		err = wait_interrupt(r, 0);
	}
	if (r->tid && !err && r->prepared)
		write_mask(r->tid, r->mask);
	/* that also if it was not prepared: it was interrupted all the same */
	if (r->tid && !err && remote_restart_is_ours(&r->restart))
		runs = make_again(r, &sig);
	else if (r->tid && !err && r->prepared)
		write_regs(r->tid, &r->was);
	if (r->tid && !err && !runs)
		ptrace(PTRACE_DETACH, r->tid, NULL, (void *)(intptr_t)sig);
	r->tid = 0;
	r->stopped = r->prepared = r->called = false;
	r->restart = (struct remote_restart){0};
}

/* Hold @tid.  On failure it was let go again, but for -ETIMEDOUT. */
static int hold(struct remote *r, pid_t tid, const struct maps *maps, const char **why)
{
	struct remote_call_seen seen;
	int err;

	*why = "cannot be traced";
	*r->seizing = 1;
	err = ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_TRACESYSGOOD) ? -errno : 0;
	*r->seizing = 0;
	if (err)
		return err;
	r->tid = tid;
	remote_call_look_last(&seen, r->pid, tid);
	if (!r->since_ns)
		r->since_ns = clock_now_ns();
	*why = REASON_RUNS_ON;
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	err = wait_interrupt(r, clock_now_ns() + LIMIT_NS);
	if (err)
		return err;
	r->stopped = true;
	err = prepare(r, &seen, maps, why);
	if (err)
		let_go(r);
	return err;
}

/* Read what must be known of the process, by one of @threads: /proc tells nothing of a main thread
 * that has ended. */
static int examine(struct remote *r, const struct remote_threads *threads, struct maps *maps,
		   const char **why)
{
	int err = -ESRCH;

	for (size_t i = 0; err == -ESRCH && i < threads->nr; i++) {
		*why = "cannot be examined";
		err = maps_read(maps, threads->tid[i]);
		err = err == -ENOENT ? -ESRCH : err;
		if (err)
			continue;
		*why = "has no instructions by which it could make system calls for us";
		err = remote_code_find(&r->code, threads->tid[i], maps);
	}
	return err;
}

/* As begin(). */
static int try_to_begin(struct remote *r, const char **why)
{
	struct remote_threads threads = {.nr = 0};
	struct maps maps = {0};
	int err = remote_threads_choose(&threads, r->pid, why);

	if (!err)
		err = examine(r, &threads, &maps, why);
	/* the next one, if one has ended or has no stack for that */
	for (size_t i = 0; !err && i < threads.nr; i++) {
		err = hold(r, threads.tid[i], &maps, why);
		if (!err || err == -ETIMEDOUT || i + 1 == threads.nr)
			break;
		err = 0;
	}
	maps_release(&maps);
	return err;
}

/* As remote_run(), to its calls. */
static int begin(struct remote *r, const char **why)
{
	const uint64_t until_ns = clock_now_ns() + LIMIT_NS;
	int err;

	while ((err = try_to_begin(r, why)) == -EAGAIN && clock_now_ns() < until_ns)
		nanosleep(&(struct timespec){.tv_nsec = AGAIN_NS}, NULL);
	return err;
}

/* Let it go on until it stops at the beginning or the end of a system call. */
static int to_syscall(struct remote *r)
{
	int status, err, sig = 0;

	while (!(err = go_on(r, PTRACE_SYSCALL, sig, &status)) && !is_syscall(status)) {
		sig = signal_of(status);
		/* all are blocked but this one, those of faults, and perhaps SIGSYS */
		if (sig && sig != SIGSTOP)
			return -EFAULT;
	}
	return err;
}

/* Would the kernel make a call again that returned this, where no handler is run? */
static bool is_again(int64_t result)
{
	return result == -ERESTARTSYS || result == -ERESTARTNOINTR || result == -ERESTARTNOHAND;
}

int remote_call(struct remote *r, long nr, const uint64_t args[6], int64_t *result)
{
	struct user_regs_struct regs = regs_back(r), after;
	int err;

	if (!r->tid)
		return -ESRCH;
	regs.rip = r->code.call;
	regs.rsp = r->frame;
	regs.rax = (unsigned long long)nr;
	regs.rdi = args[0];
	regs.rsi = args[1];
	regs.rdx = args[2];
	regs.r10 = args[3];
	regs.r8 = args[4];
	regs.r9 = args[5];
	do {
		err = write_regs(r->tid, &regs);
		r->called = true;
		if (!err)
			err = to_syscall(r);
		if (!err)
			err = to_syscall(r);
		if (!err)
			err = read_regs(r->tid, &after);
	} while (!err && is_again((int64_t)after.rax));
	if (!err)
		*result = (int64_t)after.rax;
	return err;
}

int remote_put(struct remote *r, const void *bytes, size_t len, uint64_t *at)
{
	int err;

	if (len > REMOTE_PUT_MOST - (r->frame - r->lowest))
		return -E2BIG;
	*at = (r->lowest - len) & ~UINT64_C(15);
	err = remote_write(r->tid, *at, bytes, len);
	if (!err)
		r->lowest = *at;
	return err;
}

/* What the thread is to do. */
struct order {
	pid_t pid, self; /* @self: the thread */
	remote_fn *run;
	void *arg;
	uint64_t held_ns;
	const char **why;
	int result;
	_Atomic int seizing;
};

static void *execute(void *arg)
{
	struct order *order = arg;
	struct remote r = {.pid = order->pid, .seizing = &order->seizing};
	const int awake = awake_begin();
	sigset_t all;

	/* they are for others, whose calls they may interrupt */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	/* the target waits for us; not allowed to all */
	setpriority(PRIO_PROCESS, 0, -20);
	order->self = (pid_t)syscall(SYS_gettid);
	order->result = begin(&r, order->why);
	if (!order->result) {
		*order->why = "ended, or refused a call";
		order->result = order->run(&r, order->arg);
	}
	let_go(&r);
	order->held_ns = r.since_ns ? clock_now_ns() - r.since_ns : 0;
	awake_end(awake);
	return NULL;
}

int remote_run(pid_t pid, remote_fn *run, void *arg, uint64_t *held_ns, const char **why)
{
	struct order order = {.pid = pid, .run = run, .arg = arg, .why = why};
	pthread_t thread;
	int err;

	*held_ns = 0;
	*why = "cannot be examined";
	err = pthread_create(&thread, NULL, execute, &order);

	if (err)
		return -err;
	join_tracer(thread, pid, &order.seizing);
	proc_wait_for_end(order.self);
	*held_ns = order.held_ns;
	return order.result;
}
