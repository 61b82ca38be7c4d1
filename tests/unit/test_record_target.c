/* test_record_target.c - a process whose number is another's by now: nothing of that one is taken
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/target/target.h"

/* This process, as it would seem if @ended, who is gone, had had its number before. */
static void become_next(struct target *t, bool reap)
{
	pid_t ended = fork();

	if (!ended)
		_exit(0);
	assert_true(ended > 0);
	*t = (struct target){.pid = getpid(), .task = getpid()};
	t->pidfd = (int)syscall(SYS_pidfd_open, ended, 0);
	assert_true(t->pidfd >= 0);
	strcpy(t->comm, "before");
	strcpy(t->command, "before all");
	if (reap)
		assert_int_equal(waitpid(ended, NULL, 0), ended);
	else
		assert_int_equal(waitid(P_PID, (id_t)ended, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
}

static void test_files_of_the_next_one_are_not_opened(void **state)
{
	static const enum helper_file files[] = {HELPER_MAPS, HELPER_AUXV, HELPER_EXE, HELPER_ROOT};
	struct maps maps = {0};
	struct target t;

	(void)state;
	become_next(&t, true);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		assert_int_equal(target_open_file(&t, files[i]), -ESRCH);
	assert_int_equal(target_read_maps(&t, &maps), -ESRCH);
	assert_int_equal(maps.nr, 0);
	target_release(&t);
}

static void test_memory_of_the_next_one_is_not_read(void **state)
{
	uint64_t value = 47, copy = 0;
	struct target t;

	(void)state;
	become_next(&t, true);
	assert_int_equal(target_read_memory(&t, (uintptr_t)&value, &copy, sizeof(copy)), -ESRCH);
	target_release(&t);
}

static void test_names_of_the_next_one_are_not_taken(void **state)
{
	struct target t;

	(void)state;
	become_next(&t, true);
	target_describe(&t);
	assert_string_equal(t.comm, "before");
	assert_string_equal(t.command, "before all");
	target_release(&t);
}

/* While nobody has waited for it, its number is its own. */
static void test_one_that_was_not_waited_for_is_read(void **state)
{
	uint64_t value = 47, copy = 0;
	struct maps maps = {0};
	struct target t;

	(void)state;
	become_next(&t, false);
	assert_int_equal(target_read_maps(&t, &maps), 0);
	assert_true(maps.nr > 0);
	maps_release(&maps);
	assert_int_equal(target_read_memory(&t, (uintptr_t)&value, &copy, sizeof(copy)), 0);
	assert_int_equal(copy, 47);
	target_describe(&t);
	assert_string_not_equal(t.command, "before all");
	target_release(&t);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files_of_the_next_one_are_not_opened),
		cmocka_unit_test(test_memory_of_the_next_one_is_not_read),
		cmocka_unit_test(test_names_of_the_next_one_are_not_taken),
		cmocka_unit_test(test_one_that_was_not_waited_for_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
