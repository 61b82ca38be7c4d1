/* test_report_values.c - numbers on the command line, suppressions, and text as JSON */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <unistd.h>

#include <cmocka.h>

#include "cmdline/values.h"
#include "report/base/json.h"
#include "report/filter/suppressions.h"

static void bytes_have_units(void **state)
{
	static const char *const wrong[] = {"",
					    "K",
					    "-1",
					    " 1",
					    "1KK",
					    "1BK",
					    "1e3",
					    "1.5K",
					    "1 K",
					    "0x10",
					    "18446744073709551616",
					    "18014398509481984K"};
	uint64_t value;

	(void)state;
	assert_int_equal(value_bytes("4096", &value), 0);
	assert_int_equal(value, 4096);
	assert_int_equal(value_bytes("3T", &value), 0);
	assert_int_equal(value, (uint64_t)3 << 40);
	assert_int_equal(value_bytes("512k", &value), 0);
	assert_int_equal(value, 512 << 10);
	assert_int_equal(value_bytes("7mb", &value), 0);
	assert_int_equal(value, 7 << 20);
	assert_int_equal(value_bytes("4096B", &value), 0);
	assert_int_equal(value, 4096);
	assert_true(value_has_unit("4096B"));
	assert_false(value_has_unit("4096"));
	assert_int_equal(value_bytes("18446744073709551615", &value), 0);
	assert_true(value == UINT64_MAX);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(value_bytes(wrong[i], &value), -EINVAL);
}

static void addresses_are_hexadecimal_behind_0x(void **state)
{
	static const char *const wrong[] = {
		"", "0x", "0xg", "-1", "0x-1", " 0x1", "0x1 ", "7f00", "0x10000000000000000"};
	uint64_t value;

	(void)state;
	assert_int_equal(value_address("0x7fCd0000b90A", &value), 0);
	assert_true(value == 0x7fcd0000b90a);
	assert_int_equal(value_address("0XffffffffffffffFF", &value), 0);
	assert_true(value == UINT64_MAX);
	assert_int_equal(value_address("4096", &value), 0);
	assert_int_equal(value, 4096);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(value_address(wrong[i], &value), -EINVAL);
}

static void times_have_units_and_fractions(void **state)
{
	static const char *const wrong[] = {"",	   "s",	  "-1s", "1e3", "1.2.3", "inf",
					    "0x1", "1 s", "1ns", "1S",	".",	 "999999999999d"};
	static const struct {
		const char *text;
		uint64_t ns;
	} right[] = {{"10", 10000000000u},   {"1.5s", 1500000000},
		     {"250ms", 250000000},   {"0.1ms", 100000},
		     {"7us", 7000},	     {".5", 500000000},
		     {"2m", 120000000000},   {"1h", 3600000000000},
		     {"1d", 86400000000000}, {"0", 0}};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++) {
		assert_int_equal(value_time(right[i].text, &value), 0);
		assert_true(value == right[i].ns);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(value_time(wrong[i], &value), -EINVAL);
}

/* Whether the one suppression @line suppresses a function called @name. */
static bool suppresses(const char *line, const char *name)
{
	struct live_amount amount = {.blocks = 3, .bytes = 7};
	char path[] = "/tmp/test_report_values.XXXXXX";
	int fd = mkstemp(path);
	struct suppressions *all;
	size_t number;
	bool matches;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, line, strlen(line)), strlen(line));
	close(fd);
	assert_int_equal(suppressions_new(&all), 0);
	assert_int_equal(suppressions_load(all, path, &number), 0);
	unlink(path);
	matches = suppressions_match(all, amount, name, NULL, "");
	assert_int_equal(suppressions_sum(all).bytes, matches ? 7 : 0);
	suppressions_free(all);
	return matches;
}

static void suppressions_are_those_of_leaksanitizer(void **state)
{
	static const struct {
		const char *line, *name;
		bool matches;
	} cases[] = {
		{"leak:foo", "foo", true},
		{"leak:foo", "a::foo(int)", true},
		{"leak:foo", "fo", false},
		{"leak:^foo", "foobar", true},
		{"leak:^foo", "afoo", false},
		{"leak:foo$", "afoo", true},
		{"leak:foo$", "foo1", false},
		{"leak:^foo$", "foo", true},
		{"leak:^foo$", "foofoo", false},
		{"leak:foo$", "foo1foo", true},
		{"leak:f*r", "foobar", true},
		{"leak:f*r$", "foobarz", false},
		{"leak:^f*b*r$", "foobar", true},
		{"leak:^f*b*z$", "foobar", false},
		{"leak:*", "anything", true},
		{"leak:b*f", "foobar", false},
		{"leak:o*o", "foo", true},
		{"leak:o*o*o", "foo", false},
		{"  leak:foo  \n", "foo", true},
		{"# leak:foo\n\n", "foo", false},
		{"leak:operator new", "operator new(unsigned long)", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (suppresses(cases[i].line, cases[i].name) != cases[i].matches)
			fail_msg("'%s' and '%s'", cases[i].line, cases[i].name);
}

static void text_of_json_is_safe_in_a_page(void **state)
{
	char *text = NULL;
	size_t len;
	struct json json = {.out = open_memstream(&text, &len)};

	(void)state;
	json_open(&json, NULL, '[');
	json_text(&json, NULL, "a\"b\\c\n</x><!--<b>/\xff");
	json_number(&json, NULL, UINT64_MAX);
	json_open(&json, NULL, '{');
	json_bool(&json, "k", true);
	json_signed(&json, "s", INT64_MIN);
	json_fraction(&json, "f", 0.66666);
	json_close(&json, '}');
	json_close(&json, ']');
	fclose(json.out);
	assert_string_equal(text, "[\"a\\\"b\\\\c\\\\x0A<\\/x>\\u003c!--<b>/\\\\xFF\","
				  "18446744073709551615,\n {\n  \"k\":true,\n"
				  "  \"s\":-9223372036854775808,\n  \"f\":0.6667\n }\n]\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_have_units),
		cmocka_unit_test(addresses_are_hexadecimal_behind_0x),
		cmocka_unit_test(times_have_units_and_fractions),
		cmocka_unit_test(suppressions_are_those_of_leaksanitizer),
		cmocka_unit_test(text_of_json_is_safe_in_a_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
