/* test_record_kernel.c - versions of kernels are compared as numbers */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/kernel.h"

static void releases_are_compared_number_by_number(void **state)
{
	(void)state;
	assert_true(kernel_release_at_least("6.18.44-fc-v669", 6, 18, 44));
	assert_true(kernel_release_at_least("6.18.44-fc-v669", 6, 9, 99));
	assert_true(kernel_release_at_least("10.0.0", 9, 99, 99));
	assert_false(kernel_release_at_least("6.9.4", 6, 9, 5));
	assert_false(kernel_release_at_least("6.6.34-1", 6, 6, 35));
	assert_false(kernel_release_at_least("5.19.17", 6, 0, 0));
	assert_true(kernel_release_at_least("6.10-rc1", 6, 10, 0));
	assert_false(kernel_release_at_least("6.10-rc1", 6, 10, 1));
	assert_false(kernel_release_at_least("", 1, 0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(releases_are_compared_number_by_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
