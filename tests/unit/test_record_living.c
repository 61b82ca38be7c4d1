/* test_record_living.c - which threads have ended, or have begun to */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/base/living.h"

static pid_t own_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static void one_that_runs(void **state)
{
	(void)state;
	assert_true(living_is(own_tid()));
	assert_true(living_goes_on(own_tid()));
}

static void one_that_nobody_has_waited_for(void **state)
{
	siginfo_t info;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_false(living_is(pid));
	assert_false(living_goes_on(pid));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(living_is(pid));
	assert_false(living_goes_on(pid));
}

static int go_on[2];

/* Says its number, and that its main thread has ended, and lives until the pipe is closed. */
static void *outlive(void *arg)
{
	const int to = *(const int *)arg;
	pid_t tid = own_tid();
	char byte;

	while (living_is(getpid()))
		usleep(1000);
	if (write(to, &tid, sizeof(tid)) == sizeof(tid))
		(void)!read(go_on[0], &byte, 1);
	_exit(0);
}

static void a_main_thread_that_has_ended(void **state)
{
	pid_t pid, tid;
	int said[2];

	(void)state;
	assert_int_equal(pipe(said), 0);
	assert_int_equal(pipe(go_on), 0);
	pid = fork();
	if (!pid) {
		pthread_t thread;

		close(go_on[1]);
		pthread_create(&thread, NULL, outlive, &said[1]);
		syscall(SYS_exit, 0);
	}
	assert_true(pid > 0);
	close(go_on[0]);
	assert_int_equal(read(said[0], &tid, sizeof(tid)), sizeof(tid));
	assert_false(living_is(pid));
	assert_false(living_goes_on(pid));
	assert_true(living_is(tid));
	assert_true(living_goes_on(tid));
	assert_int_equal(living_thread(pid), tid);
	close(go_on[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_runs),
		cmocka_unit_test(one_that_nobody_has_waited_for),
		cmocka_unit_test(a_main_thread_that_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
