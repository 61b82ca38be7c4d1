/* test_report_text.c - nothing that could harm a terminal comes out of a name */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <locale.h>

#include <cmocka.h>

#include "report/base/text.h"

static void check_escape(const char *text, const char *expected)
{
	char *escaped = text_escape(text);

	assert_non_null(escaped);
	assert_string_equal(escaped, expected);
	free(escaped);
}

static void harmless_text_stays_as_it_is(void **state)
{
	(void)state;
	check_escape("", "");
	check_escape("std::vector<int, A&&>::operator[](unsigned long) const",
		     "std::vector<int, A&&>::operator[](unsigned long) const");
	check_escape("na\xc3\xafve \xe6\xbc\xa2 \xf0\x9f\x90\x8d \\n",
		     "na\xc3\xafve \xe6\xbc\xa2 \xf0\x9f\x90\x8d \\n");
}

static void control_characters_are_shown(void **state)
{
	(void)state;
	check_escape("a\x1b[2Jb\nc\td\x7f", "a\\x1B[2Jb\\x0Ac\\x09d\\x7F");
	check_escape("\xc2\x80\xc2\x9b\xc2\xa0", "\\u{80}\\u{9B}\xc2\xa0");
}

static void direction_and_invisible_characters_are_shown(void **state)
{
	(void)state;
	check_escape("\xe2\x80\xae"
		     "evil\xe2\x81\xa6 \xd8\x9c \xe2\x80\x8b \xe2\x80\xa8",
		     "\\u{202E}evil\\u{2066} \\u{61C} \\u{200B} \\u{2028}");
	check_escape("\xef\xbb\xbf\xf3\xa0\x80\x81", "\\u{FEFF}\\u{E0001}");
}

static void bytes_that_are_no_utf8_are_shown(void **state)
{
	(void)state;
	check_escape("\x80\xff", "\\x80\\xFF");
	check_escape("\xc0\xaf", "\\xC0\\xAF");			  /* overlong */
	check_escape("\xe0\x80\xaf", "\\xE0\\x80\\xAF");	  /* overlong */
	check_escape("\xed\xa0\x80", "\\xED\\xA0\\x80");	  /* surrogate */
	check_escape("\xf4\x90\x80\x80", "\\xF4\\x90\\x80\\x80"); /* above U+10FFFF */
	check_escape("a\xe6\xbc", "a\\xE6\\xBC");		  /* cut */
	check_escape("\xc3z", "\\xC3z");
}

static bool is_unsafe(wchar_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

/* As libc reads it: every character is valid and harmless. */
static void check_safe(const char *text)
{
	mbstate_t mbstate = {0};
	const char *at = text;

	while (*at) {
		wchar_t c;
		size_t len = mbrtowc(&c, at, strlen(at), &mbstate);

		assert_true(len > 0 && len < (size_t)-2);
		assert_false(is_unsafe(c));
		at += len;
	}
}

/* Random bytes, with those frequent that begin or go on with a UTF-8 sequence. */
static void random_text(unsigned int *seed, char *text, size_t len)
{
	static const unsigned char often[] = {0xe2, 0x80, 0x81, 0xc2, 0xed, 0xf0, 0xf3,
					      0xa0, 0xae, 0xd8, 0x9c, 0xef, 0xbb, 0xbf};

	for (size_t i = 0; i < len; i++) {
		unsigned int byte = (unsigned int)rand_r(seed);

		text[i] = (char)(byte % 3 ? often[byte / 3 % sizeof(often)] : byte / 3 % 255 + 1);
	}
	text[len] = '\0';
}

static void no_bytes_at_all_make_it_unsafe(void **state)
{
	unsigned int seed = 1;
	char text[64];

	(void)state;
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		skip();
	for (int i = 0; i < 20000; i++) {
		char *escaped, *printed;
		size_t len;
		FILE *out = open_memstream(&printed, &len);

		random_text(&seed, text, (unsigned int)rand_r(&seed) % sizeof(text));
		escaped = text_escape(text);
		assert_non_null(escaped);
		assert_non_null(out);
		check_safe(escaped);
		text_print(out, text);
		assert_int_equal(fclose(out), 0);
		assert_string_equal(printed, escaped);
		free(printed);
		free(escaped);
	}
}

static void numbers_have_commas_between_thousands(void **state)
{
	char buf[TEXT_NUMBER_MAX];

	(void)state;
	assert_string_equal(text_number(buf, 0), "0");
	assert_string_equal(text_number(buf, 999), "999");
	assert_string_equal(text_number(buf, 1000), "1,000");
	assert_string_equal(text_number(buf, 1234567), "1,234,567");
	assert_string_equal(text_number(buf, UINT64_MAX), "18,446,744,073,709,551,615");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(harmless_text_stays_as_it_is),
		cmocka_unit_test(control_characters_are_shown),
		cmocka_unit_test(direction_and_invisible_characters_are_shown),
		cmocka_unit_test(bytes_that_are_no_utf8_are_shown),
		cmocka_unit_test(no_bytes_at_all_make_it_unsafe),
		cmocka_unit_test(numbers_have_commas_between_thousands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
