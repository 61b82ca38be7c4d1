/* test_report_sizes.c - bytes as people read them: never off by more than they say, never cut */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/base/sizes.h"

static void check_text(uint64_t bytes, const char *expected)
{
	char buf[SIZE_TEXT_MAX];

	assert_string_equal(size_text(buf, bytes), expected);
}

static void small_figures_are_exact(void **state)
{
	char buf[SIZE_TEXT_MAX];

	(void)state;
	check_text(0, "0 bytes");
	check_text(1, "1 byte");
	check_text(1081, "1,081 bytes");
	check_text(10239, "10,239 bytes");
	assert_string_equal(size_cell(buf, 10239), "10,239 B");
	assert_string_equal(size_title(), "size");
}

static void large_ones_have_three_digits_at_least(void **state)
{
	(void)state;
	check_text(10240, "10.0 KiB");
	check_text(20445, "20.0 KiB");
	check_text(1024 * 1023, "1023.0 KiB");
	/* 1023.96 KiB, which one decimal would make 1024.0 */
	check_text(1048535, "1.00 MiB");
	check_text(1048576, "1.00 MiB");
	check_text(10 * 1048576 - 1, "10.0 MiB");
	check_text(UINT64_C(5) << 30, "5.00 GiB");
	check_text(UINT64_MAX, "16.0 EiB");
}

static void a_rate_is_the_nearest_whole_number(void **state)
{
	(void)state;
	assert_int_equal(size_rate_whole(4276562.4), 4276562);
	assert_int_equal(size_rate_whole(4276562.5), 4276563);
	assert_int_equal(size_rate_whole(-0.5), -1);
	assert_int_equal(size_rate_whole(1e300), INT64_C(1) << 53);
	assert_int_equal(size_rate_whole(-1e300), -(INT64_C(1) << 53));
}

/* The number that @text says, by another way than it was made. */
static double value_of(const char *text)
{
	static const char units[] = "KMGTPE";
	char unit = 0;
	double number = 0, factor = 1;
	const char *at;

	assert_int_equal(sscanf(text, "%lf %c", &number, &unit), 2);
	at = strchr(units, unit);
	assert_non_null(at);
	for (long i = 0; i <= at - units; i++)
		factor *= 1024;
	return number * factor;
}

static void what_is_said_is_right_to_half_a_percent(void **state)
{
	uint64_t seed = 88172645463325252u;
	char buf[SIZE_TEXT_MAX];

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint64_t bytes;
		double ratio;

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		bytes = seed >> (i % 50);
		if (bytes < SIZE_EXACT_MAX)
			continue;
		ratio = value_of(size_text(buf, bytes)) / (double)bytes;
		assert_true(ratio > 0.995 && ratio < 1.005);
		assert_true(strlen(buf) <= strlen("1023.9 KiB"));
	}
}

static void changes_and_rates_have_a_sign(void **state)
{
	char buf[SIZE_TEXT_MAX];

	(void)state;
	assert_string_equal(size_change_text(buf, 100, 103), "+3 bytes");
	assert_string_equal(size_change_cell(buf, 103, 100), "-3 B");
	assert_string_equal(size_change_cell(buf, 7, 7), "+0 B");
	assert_string_equal(size_change_cell(buf, UINT64_MAX, 0), "-16.0 EiB");
	assert_string_equal(size_rate_cell(buf, -20480.2), "-20.0 KiB");
	assert_string_equal(size_rate_text(buf, 12.6), "+13 bytes");
	assert_string_equal(size_rate_text(buf, -0.4), "0 bytes");
	assert_string_equal(size_rate_text(buf, 1e300), "+8.00 EiB");
	assert_string_equal(size_rate_text(buf, -1.0 / 0.0), "-8.00 EiB");
}

static void all_are_exact_if_wanted(void **state)
{
	char buf[SIZE_TEXT_MAX];

	(void)state;
	sizes_set_exact(true);
	check_text(1, "1 byte");
	check_text(1048576, "1,048,576 bytes");
	assert_string_equal(size_cell(buf, UINT64_MAX), "18,446,744,073,709,551,615");
	assert_string_equal(size_change_text(buf, UINT64_MAX, 0),
			    "-18,446,744,073,709,551,615 bytes");
	assert_string_equal(size_title(), "bytes");
	sizes_set_exact(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_figures_are_exact),
		cmocka_unit_test(a_rate_is_the_nearest_whole_number),
		cmocka_unit_test(large_ones_have_three_digits_at_least),
		cmocka_unit_test(what_is_said_is_right_to_half_a_percent),
		cmocka_unit_test(changes_and_rates_have_a_sign),
		cmocka_unit_test(all_are_exact_if_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
