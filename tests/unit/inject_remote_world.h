/* inject_remote_world.h - processes in which remote calls are executed, and what they saw of it */
#ifndef INJECT_REMOTE_WORLD_H
#define INJECT_REMOTE_WORLD_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/base/clock.h"
#include "record/base/kernel.h"
#include "record/inject/remote/remote.h"

#define MS UINT64_C(1000000)

static inline bool kernel_at_least(int major, int minor)
{
	struct utsname name;

	return !uname(&name) && kernel_release_at_least(name.release, major, minor, 0);
}

/* Before, a thread can be held in a system call alone. */
static inline bool is_sequence_told(void)
{
	return kernel_at_least(5, 13);
}

/* What a target tells its test: memory of both. */
struct told {
	atomic_int ready;	   /* it is about to do what is tested */
	atomic_int over;	   /* asked of it: to end */
	atomic_ullong rounds;	   /* counts as long as it goes on */
	atomic_ullong wrong;	   /* checks of its own that failed */
	atomic_ullong handled;	   /* signals */
	atomic_ullong interrupted; /* calls that returned EINTR */
	atomic_llong result;	   /* of its call */
	atomic_int error;
	atomic_ullong took_ns;
	atomic_int aux; /* the test's own */
};

struct target_process {
	pid_t pid;
	struct told *told;
};

/* Start a process that executes @run and ends.  It does not outlive the test. */
static inline void start_target(struct target_process *t, void (*run)(struct told *told))
{
	t->told = mmap(NULL, sizeof(*t->told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	assert_ptr_not_equal(t->told, MAP_FAILED);
	t->pid = fork();
	assert_true(t->pid >= 0);
	if (!t->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(t->told);
		_exit(0);
	}
}

/* Wait until it has said that it is ready. */
static inline void wait_ready(const struct target_process *t)
{
	while (!t->told->ready)
		usleep(200);
}

/* As /proc tells it: 'S', it waits; 'T', it is stopped. */
static inline char state_of(pid_t pid)
{
	char path[64], line[128], letter = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = fopen(path, "r");
	assert_non_null(status);
	while (!letter && fgets(line, sizeof(line), status))
		sscanf(line, "State: %c", &letter);
	fclose(status);
	return letter;
}

static inline void wait_state(pid_t pid, char letter)
{
	while (state_of(pid) != letter)
		usleep(200);
}

/* Wait for the end that it comes to by itself. */
static inline void wait_end(const struct target_process *t)
{
	int status;

	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	assert_int_equal(status, 0);
}

static inline void release_target(struct target_process *t)
{
	munmap(t->told, sizeof(*t->told));
}

/* Have it end, and see that it does so as it would have without us. */
static inline void end_target(struct target_process *t)
{
	t->told->over = 1;
	wait_end(t);
	assert_int_equal(t->told->wrong, 0);
	release_target(t);
}

/* It goes on: it counts. */
static inline void assert_goes_on(const struct target_process *t)
{
	const uint64_t before = t->told->rounds, until_ns = clock_now_ns() + 20000 * MS;

	while (t->told->rounds < before + 3 && clock_now_ns() < until_ns)
		usleep(200);
	assert_true(t->told->rounds >= before + 3);
}

/* A thread that is held while the test does something else, and what it is to do. */
struct there {
	pthread_t thread;
	pid_t pid;
	atomic_int held;  /* 1: yes; -1: not any more, or never */
	atomic_int asked; /* to call, or by -1 to end */
	long nr;
	uint64_t args[6];
	const void *bytes; /* to put, rather than to call */
	size_t len;
	int64_t result; /* of the call, or the address */
	int err;
	const char *why;
};

static inline int hold_there(struct remote *r, void *arg)
{
	struct there *t = arg;
	int asked;

	for (t->held = 1; (asked = t->asked) >= 0;) {
		if (!asked) {
			sched_yield();
			continue;
		}
		t->err = t->bytes ? remote_put(r, t->bytes, t->len, (uint64_t *)&t->result)
				  : remote_call(r, t->nr, t->args, &t->result);
		t->asked = 0;
	}
	return 0;
}

static inline void *hold_thread(void *arg)
{
	struct there *t = arg;
	uint64_t held_ns;

	t->err = remote_run(t->pid, hold_there, t, &held_ns, &t->why);
	t->held = -1;
	return NULL;
}

static inline int try_begin(struct there *t, pid_t pid)
{
	*t = (struct there){.pid = pid};
	assert_int_equal(pthread_create(&t->thread, NULL, hold_thread, t), 0);
	while (!t->held)
		sched_yield();
	if (t->held > 0)
		return 0;
	pthread_join(t->thread, NULL);
	return t->err;
}

static inline void begin_there(struct there *t, pid_t pid)
{
	const int err = try_begin(t, pid);

	if (err)
		print_error("%d: it %s\n", err, t->why);
	assert_int_equal(err, 0);
}

static inline int ask_there(struct there *t)
{
	t->asked = 1;
	while (t->asked)
		sched_yield();
	return t->err;
}

/* A call there with six arguments, or two. */
static inline int64_t call_with(struct there *t, long nr, const uint64_t args[6])
{
	t->nr = nr;
	t->bytes = NULL;
	memcpy(t->args, args, sizeof(t->args));
	assert_int_equal(ask_there(t), 0);
	return t->result;
}

static inline int64_t call_there(struct there *t, long nr, uint64_t a, uint64_t b)
{
	return call_with(t, nr, (const uint64_t[6]){a, b});
}

/* Returns as remote_put(). */
static inline int put_there(struct there *t, const void *bytes, size_t len, uint64_t *at)
{
	int err;

	t->bytes = bytes;
	t->len = len;
	err = ask_there(t);
	*at = (uint64_t)t->result;
	return err;
}

static inline void end_there(struct there *t)
{
	t->asked = -1;
	pthread_join(t->thread, NULL);
	assert_int_equal(t->err, 0);
}

#endif
