/* reader_target.h - for the tests of the stack reader: a process whose threads wait in many ways
 *
 * A child of the test, with threads that tell in shared memory what libgcc finds on their stacks,
 * how often their waiting began anew and how often it was cut short.
 */
#ifndef TESTS_READER_TARGET_H
#define TESTS_READER_TARGET_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/unwind_live.h"

enum target_wait {
	WAIT_SLEEP,
	WAIT_POLL,
	WAIT_FUTEX,
	WAIT_READ,
	WAIT_EPOLL,
	WAIT_SIGNAL,
	WAIT_NOTHING, /* it runs */
	NR_WAITS,
};

struct target_thread {
	_Atomic(pid_t) tid; /* set last */
	atomic_ulong rounds, cut_short;
	uint64_t pc[LIVE_MAX_FRAMES]; /* innermost first, as libgcc finds them */
	size_t nr_pc;
};

struct target_shared {
	struct target_thread thread[NR_WAITS];
	atomic_ulong signals;
	atomic_int ready;
};

struct target {
	pid_t pid;
	struct target_shared *shared;
};

/* Of the child only. */
__attribute__((unused)) static struct target_shared *target_self;
static int target_pipe[2], target_epoll;

static _Unwind_Reason_Code target_collect(struct _Unwind_Context *context, void *arg)
{
	struct target_thread *t = arg;

	if (_Unwind_GetIP(context) && t->nr_pc < LIVE_MAX_FRAMES)
		t->pc[t->nr_pc++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

/* Wait once; the result of the system call. */
static long target_wait_once(enum target_wait how)
{
	static int futex;
	const struct timespec ms20 = {0, 20000000};
	struct pollfd readable = {.fd = target_pipe[0], .events = POLLIN};
	struct epoll_event event;
	sigset_t set;
	char byte;

	switch (how) {
	case WAIT_SLEEP:
		return clock_nanosleep(CLOCK_MONOTONIC, 0, &ms20, NULL) == EINTR ? -1 : 0;
	case WAIT_POLL:
		return poll(&readable, 1, 20);
	case WAIT_FUTEX:
		return syscall(SYS_futex, &futex, FUTEX_WAIT, 0, &ms20, NULL, 0);
	case WAIT_READ:
		return read(target_pipe[0], &byte, 1); /* for ever */
	case WAIT_EPOLL:
		return epoll_wait(target_epoll, &event, 1, 20);
	case WAIT_SIGNAL:
		sigemptyset(&set);
		sigaddset(&set, SIGUSR2);
		return sigtimedwait(&set, NULL, &ms20);
	default:
		return 0;
	}
}

__attribute__((noinline)) static void target_rounds(enum target_wait how)
{
	struct target_thread *t = &target_self->thread[how];

	_Unwind_Backtrace(target_collect, t);
	t->tid = (pid_t)syscall(SYS_gettid);
	while (target_self->ready >= 0) {
		errno = 0;
		if (target_wait_once(how) < 0 && errno == EINTR)
			t->cut_short++;
		t->rounds++;
	}
}

/* Calls, whatever the compiler could make of them. */
__attribute__((noipa)) static int target_nested(int depth, enum target_wait how)
{
	int deeper = 0;

	if (depth)
		deeper = target_nested(depth - 1, how) + 1;
	else
		target_rounds(how);
	__asm__ volatile("" : "+r"(deeper));
	return deeper;
}

static void *target_thread_main(void *arg)
{
	target_nested(5, (enum target_wait)(uintptr_t)arg);
	return NULL;
}

static void target_signal(int sig)
{
	(void)sig;
	target_self->signals++;
}

/* Have the child run @body and then end with status 7.  It dies with the test. */
__attribute__((unused)) static struct target target_start(void (*body)(void))
{
	struct target t;
	pid_t self = getpid();

	t.shared = mmap(NULL, sizeof(*t.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	assert_true(t.shared != MAP_FAILED);
	t.pid = fork();
	assert_true(t.pid >= 0);
	if (t.pid)
		return t;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != self)
		_exit(0);
	target_self = t.shared;
	body();
	_exit(7);
}

/* End the process; returns the status that it ended with. */
__attribute__((unused)) static int target_end(struct target *t)
{
	int status = -1;

	kill(t->pid, SIGKILL);
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	munmap(t->shared, sizeof(*t->shared));
	return status;
}

/* A body: a thread for each way of waiting; the main thread takes signals. */
__attribute__((unused)) static void target_all_waits(void)
{
	struct sigaction action = {.sa_handler = target_signal, .sa_flags = SA_RESTART};
	struct epoll_event event = {.events = EPOLLIN};
	sigset_t set;
	pthread_t thread;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (pipe(target_pipe))
		_exit(1);
	target_epoll = epoll_create1(0);
	epoll_ctl(target_epoll, EPOLL_CTL_ADD, target_pipe[0], &event);
	for (uintptr_t i = 0; i < NR_WAITS; i++)
		if (pthread_create(&thread, NULL, target_thread_main, (void *)i))
			_exit(1);
	sigaction(SIGRTMIN, &action, NULL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	target_self->ready = 1;
	for (;;)
		pause();
}

__attribute__((unused)) static void target_nap(unsigned int us)
{
	const struct timespec ts = {0, (long)us * 1000};

	nanosleep(&ts, NULL);
}

/* Wait until all threads of target_all_waits() wait. */
__attribute__((unused)) static struct target target_start_waits(void)
{
	struct target t = target_start(target_all_waits);

	for (int i = 0; i < NR_WAITS; i++)
		while (!t.shared->thread[i].tid || !t.shared->ready)
			target_nap(1000);
	target_nap(5000);
	return t;
}

/* The line of /proc/PID/status that begins with @name, without it. */
__attribute__((unused)) static const char *target_status(pid_t pid, const char *name)
{
	static char line[256];
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			break;
	fclose(f);
	return line + strlen(name);
}

__attribute__((unused)) static char target_state(pid_t pid)
{
	char state = '?';

	sscanf(target_status(pid, "State:"), " %c", &state);
	return state;
}

__attribute__((unused)) static int target_tracer(pid_t pid)
{
	return atoi(target_status(pid, "TracerPid:"));
}

__attribute__((unused)) static int target_open_files(void)
{
	int nr = 0;

	for (int fd = 0; fd < 256; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

#endif
