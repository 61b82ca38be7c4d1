/* test_record_join.c - while a thread of ours that traces others is waited for */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "record/base/clock.h"
#include "record/base/proc.h"
#include "record/ptrace/join.h"
#include "threads_child.h"

#define NR	 4
#define LONG_NS	 UINT64_C(20000000000)
#define MILLI_NS 1000000
#define REAPS	 50 /* milliseconds, in which join_tracer() looks several times */

static void live(int i)
{
	(void)i;
	for (;;)
		pause();
}

static void end_this_thread(int sig)
{
	(void)sig;
	syscall(SYS_exit, 0);
}

/* The last thread of @pid. */
static pid_t last_thread(pid_t pid)
{
	DIR *dir = proc_threads(pid);
	pid_t tid, last = 0;

	while (dir && (tid = proc_next_thread(dir)) > 0)
		last = tid > last ? tid : last;
	if (dir)
		closedir(dir);
	return last;
}

static void pause_for(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * MILLI_NS}, NULL);
}

struct tracing {
	pid_t pid, tid, got;
	int status;
	bool reaped;
};

/* Stop thread t->tid, and ask what became of it only after a while. */
static void *stop_late(void *arg)
{
	struct tracing *t = arg;

	if (ptrace(PTRACE_SEIZE, t->tid, NULL, NULL))
		return NULL;
	ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
	pause_for(REAPS);
	t->got = waitpid(t->tid, &t->status, WNOHANG | __WALL);
	ptrace(PTRACE_DETACH, t->tid, NULL, NULL);
	return NULL;
}

static void a_stop_is_left_to_who_waits_for_it(void **state)
{
	pid_t pid = start_threads_child(NR, live);
	struct tracing t = {.pid = pid, .tid = last_thread(pid)};
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, stop_late, &t), 0);
	join_tracer(thread, pid, NULL);
	assert_int_equal(t.got, t.tid);
	assert_true(WIFSTOPPED(t.status));
	assert_int_equal(t.status >> 16, PTRACE_EVENT_STOP);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Trace thread t->tid, have it end, and wait until its number is gone, without waiting for it. */
static void *end_traced(void *arg)
{
	struct tracing *t = arg;
	const uint64_t until_ns = clock_now_ns() + LONG_NS;

	if (ptrace(PTRACE_SEIZE, t->tid, NULL, NULL))
		return NULL;
	syscall(SYS_tgkill, t->pid, t->tid, SIGUSR1);
	/* the signal comes to the tracer first */
	t->got = waitpid(t->tid, &t->status, __WALL);
	ptrace(PTRACE_CONT, t->tid, NULL, (void *)(intptr_t)SIGUSR1);
	while (!(t->reaped = !proc_has_thread(t->pid, t->tid)) && clock_now_ns() < until_ns)
		pause_for(1);
	return NULL;
}

static void one_that_has_ended_is_reaped(void **state)
{
	struct tracing t = {0};
	pthread_t thread;

	(void)state;
	signal(SIGUSR1, end_this_thread);
	t.pid = start_threads_child(NR, live);
	t.tid = last_thread(t.pid);
	assert_int_equal(pthread_create(&thread, NULL, end_traced, &t), 0);
	join_tracer(thread, t.pid, NULL);
	assert_int_equal(t.got, t.tid);
	assert_true(WIFSTOPPED(t.status) && WSTOPSIG(t.status) == SIGUSR1);
	assert_true(t.reaped);
	kill(t.pid, SIGKILL);
	assert_int_equal(waitpid(t.pid, NULL, 0), t.pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stop_is_left_to_who_waits_for_it),
		cmocka_unit_test(one_that_has_ended_is_reaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
