/* test_record_kernel.c - versions of kernels are compared as numbers */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/base/kernel.h"

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

/* As Linux 6.6 and later print it, with the fields that matter here. */
#define STATUS(seccomp, features, locked)                        \
	"Name:\tshstk\nUmask:\t0022\nSeccomp:\t" seccomp         \
	"\nSeccomp_filters:\t1\nx86_Thread_features:\t" features \
	"\nx86_Thread_features_locked:\t" locked "\n"

static void shadow_stack_is_a_risk_until_6_11(void **state)
{
	const char *with = STATUS("0", "shstk ", ""), *more = STATUS("0", "wrss shstk ", "shstk ");
	const char *locked = STATUS("0", "", "shstk wrss "), *other = STATUS("0", "noshstk ", "");

	(void)state;
	assert_int_equal(kernel_risk_of(with, "6.6.0-rc1"), KERNEL_RISK_SHADOW_STACK);
	assert_int_equal(kernel_risk_of(more, "6.10.14"), KERNEL_RISK_SHADOW_STACK);
	assert_int_equal(kernel_risk_of(with, "6.11.0"), KERNEL_NO_RISK);
	assert_int_equal(kernel_risk_of(with, "6.18.44"), KERNEL_NO_RISK);
	assert_int_equal(kernel_risk_of(locked, "6.8.0"), KERNEL_NO_RISK); /* it is not on */
	assert_int_equal(kernel_risk_of(other, "6.8.0"), KERNEL_NO_RISK);
	assert_int_equal(kernel_risk_of("Name:\tcat\nSeccomp:\t0\n", "6.8.0"), KERNEL_NO_RISK);
	assert_int_equal(kernel_risk_of("", "6.8.0"), KERNEL_NO_RISK);
}

static void seccomp_is_a_risk_on_the_kernels_that_kill_for_it(void **state)
{
	const char *strict = STATUS("1", "", ""), *filter = STATUS("2", "", "");
	const char *none = STATUS("0", "", "");

	(void)state;
	assert_int_equal(kernel_risk_of(filter, "6.10.14"), KERNEL_NO_RISK);
	assert_int_equal(kernel_risk_of(filter, "6.11.0"), KERNEL_RISK_SECCOMP);
	assert_int_equal(kernel_risk_of(strict, "6.12.13-amd64"), KERNEL_RISK_SECCOMP);
	assert_int_equal(kernel_risk_of(strict, "6.12.14"), KERNEL_NO_RISK);
	assert_int_equal(kernel_risk_of(filter, "6.13.2"), KERNEL_RISK_SECCOMP);
	assert_int_equal(kernel_risk_of(filter, "6.13.3"), KERNEL_NO_RISK);
	assert_int_equal(kernel_risk_of(none, "6.12.1"), KERNEL_NO_RISK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(releases_are_compared_number_by_number),
		cmocka_unit_test(shadow_stack_is_a_risk_until_6_11),
		cmocka_unit_test(seccomp_is_a_risk_on_the_kernels_that_kill_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
