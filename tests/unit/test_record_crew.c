/* test_record_crew.c - several threads that do the same work, and stop a process together */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/base/proc.h"
#include "record/ptrace/crew.h"
#include "record/ptrace/stop_all.h"
#include "threads_child.h"

#define NR 40 /* threads of a child: some run, some wait */

struct counts {
	_Atomic unsigned int calls, of[CREW_MOST];
	int err; /* what the last one of the crew returns */
	unsigned int last;
};

static int count(void *arg, unsigned int who)
{
	struct counts *c = arg;

	c->calls++;
	c->of[who]++;
	return who == c->last ? c->err : 0;
}

static void each_of_a_crew_works_each_time(void **state)
{
	struct crew *crew = crew_new(CREW_MOST + 3);
	const unsigned int nr = crew_size(crew);
	struct counts c = {.last = nr - 1};

	(void)state;
	assert_in_range(nr, 1, CREW_MOST);
	for (unsigned int i = 0; i < 1000; i++)
		assert_int_equal(crew_do(crew, count, &c), 0);
	assert_int_equal(c.calls, 1000 * nr);
	for (unsigned int i = 0; i < nr; i++)
		assert_int_equal(c.of[i], 1000);
	/* a failure is told once */
	c.err = -EAGAIN;
	assert_int_equal(crew_do(crew, count, &c), -EAGAIN);
	c.err = 0;
	assert_int_equal(crew_do(crew, count, &c), 0);
	crew_free(crew);
}

static void without_a_crew_the_caller_works(void **state)
{
	struct counts c = {.err = -EPERM};

	(void)state;
	assert_null(crew_new(1));
	assert_int_equal(crew_size(NULL), 1);
	assert_int_equal(crew_do(NULL, count, &c), -EPERM);
	assert_int_equal(c.of[0], 1);
	assert_int_equal(c.calls, 1);
	crew_free(NULL);
}

static void live(int i)
{
	while (i && i % 8 == 0)
		;
	for (;;)
		pause();
}

/* The id of the thread that traces thread @tid; 0: none does. */
static int tracer_of(pid_t pid, pid_t tid)
{
	char text[4096];
	const char *at;

	assert_true(proc_read(text, sizeof(text), "/proc/%d/task/%d/status", (int)pid, (int)tid));
	at = strstr(text, "TracerPid:");
	assert_non_null(at);
	return atoi(at + strlen("TracerPid:"));
}

struct seen {
	_Atomic unsigned int visits, ends, of[CREW_MOST];
	_Atomic int refused; /* the visit of so many threads is a failure */
};

static int see(void *ctx, const struct stop_all *s, size_t i, unsigned int who)
{
	struct seen *seen = ctx;
	struct user_regs_struct regs;
	pid_t tid;

	if (i == s->nr) {
		seen->ends++;
		return 0;
	}
	if (stop_all_regs(s, i, &tid, &regs) || !regs.rsp)
		return -EINVAL;
	seen->visits++;
	seen->of[who]++;
	return seen->refused-- == 1 ? -EAGAIN : 0;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	/* its threads that this one still traces are waited for, too */
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	assert_int_equal(errno, ECHILD);
}

static void all_threads_are_stopped_and_seen_once(void **state)
{
	pid_t pid = start_threads_child(NR, live);

	(void)state;
	for (int times = 0; times < 20; times++) {
		struct crew *crew = stop_all_crew(pid);
		struct stop_all stop = {.crew = crew};
		struct seen seen = {0};

		assert_int_equal(stop_all_begin(&stop, pid, see, &seen), 0);
		assert_int_equal(stop.stopped, NR);
		assert_int_equal(seen.visits, NR);
		assert_int_equal(seen.ends, crew_size(crew));
		for (unsigned int i = 0; i < crew_size(crew); i++)
			assert_int_equal(seen.of[i],
					 NR / crew_size(crew) + (i < NR % crew_size(crew)));
		assert_true(stop_all_end(&stop) > 0);
		crew_free(crew);
	}
	end_child(pid);
}

static void what_one_of_the_crew_refuses_lets_all_go(void **state)
{
	pid_t pid = start_threads_child(NR, live), tid;
	struct crew *crew = stop_all_crew(pid);
	struct stop_all stop = {.crew = crew};
	struct seen seen = {.refused = NR / 2};
	DIR *dir;
	int nr = 0;

	(void)state;
	assert_int_equal(stop_all_begin(&stop, pid, see, &seen), -EAGAIN);
	stop_all_end(&stop);
	crew_free(crew);
	/* only one that has not stopped yet, and that the caller is to stop, is still traced */
	dir = proc_threads(pid);
	assert_non_null(dir);
	while ((tid = proc_next_thread(dir)) > 0) {
		int tracer = tracer_of(pid, tid);

		assert_true(!tracer || tracer == getpid());
		nr++;
	}
	closedir(dir);
	assert_int_equal(nr, NR);
	end_child(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_of_a_crew_works_each_time),
		cmocka_unit_test(without_a_crew_the_caller_works),
		cmocka_unit_test(all_threads_are_stopped_and_seen_once),
		cmocka_unit_test(what_one_of_the_crew_refuses_lets_all_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
