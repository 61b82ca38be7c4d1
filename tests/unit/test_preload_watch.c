/* test_preload_watch.c - programs that the preloaded library did not tell of */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/preload/process/process_table.h"

static void the_watch_finds_a_program_that_nobody_told_of(void **state)
{
	struct preload_process p = {.program = 1 << PRELOAD_SLOT_BITS};
	struct exec_detect w = {0};

	(void)state;
	assert_false(exec_detect_poll(&w, &p, 100));
	assert_false(exec_detect_poll(&w, &p, 100));
	assert_false(exec_detect_poll(&w, &p, 200)); /* its library may be coming up */
	assert_false(exec_detect_poll(&w, &p, 0));   /* it could not be looked at */
	assert_true(exec_detect_poll(&w, &p, 200));
	assert_false(exec_detect_poll(&w, &p, 200)); /* once */
	assert_false(exec_detect_poll(&w, &p, 300));
	assert_true(exec_detect_poll(&w, &p, 300));
}

static void the_watch_knows_programs_in_which_the_library_came_up(void **state)
{
	struct preload_process p = {.program = 1 << PRELOAD_SLOT_BITS};
	struct exec_detect w = {0};

	(void)state;
	assert_false(exec_detect_poll(&w, &p, 100));
	assert_false(exec_detect_poll(&w, &p, 200));
	p.program = 2 << PRELOAD_SLOT_BITS;
	assert_false(exec_detect_poll(&w, &p, 200));
	assert_false(exec_detect_poll(&w, &p, 200));
}

static void the_watch_leaves_out_what_the_library_told_of(void **state)
{
	struct preload_process p = {.program = 1 << PRELOAD_SLOT_BITS};
	struct exec_detect w = {0};

	(void)state;
	assert_false(exec_detect_poll(&w, &p, 100));
	p.execs = 1; /* one that fails: it is taken back */
	assert_false(exec_detect_poll(&w, &p, 100));
	p.execs = 0;
	assert_false(exec_detect_poll(&w, &p, 100));
	assert_false(exec_detect_poll(&w, &p, 200));
	assert_true(exec_detect_poll(&w, &p, 200));
	p.execs = 1; /* one without the library is counted by others */
	assert_false(exec_detect_poll(&w, &p, 300));
	assert_false(exec_detect_poll(&w, &p, 300));
	assert_false(exec_detect_poll(&w, &p, 400));
	assert_true(exec_detect_poll(&w, &p, 400));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_watch_finds_a_program_that_nobody_told_of),
		cmocka_unit_test(the_watch_knows_programs_in_which_the_library_came_up),
		cmocka_unit_test(the_watch_leaves_out_what_the_library_told_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
