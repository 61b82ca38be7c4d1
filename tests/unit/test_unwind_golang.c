/* test_unwind_golang.c - Go's table of functions: what it says, cut anywhere, and with any byte
 * wrong */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/golang/pclntab.h"

#define TEXT 0x401000u

/* Where in the table its parts are. */
enum { NAMES = 72, UNITS = 112, FILES = 128, VALUES = 160, FUNCTIONS = 192, SIZE = 320 };

static void put32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

static void put64(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

/* Describe a function at @at that begins at @start, by Go 1.18: runtime/runtime2.go, _func. */
static void put_function(uint8_t *at, uint32_t start, uint32_t name, uint32_t frame, uint8_t flags)
{
	put32(at, start);
	put32(at + 4, name);
	put32(at + 16, frame);
	put32(at + 20, 11); /* its file */
	put32(at + 24, 14); /* its lines */
	put32(at + 32, 1);  /* its unit's first file */
	at[37] = flags;
}

/* Two functions: main.f at 0 with a frame of 24 bytes from its fourth byte on, and runtime.goexit
 * at 0x40. */
static void make_table(uint8_t *t)
{
	static const uint8_t values[] = {
		0,			 /* not used */
		2,    4,    48, 0x3c, 0, /* 0, then 24 */
		2,    0x40, 0,		 /* 0 */
		0,    0,		 /* not used */
		2,    0x80, 1,		 /* file 0, of 128 bytes */
		0x18, 8,    2,	0x38, 0, /* line 11, then 12 */
	};

	memset(t, 0, SIZE);
	put32(t, 0xfffffff0);
	t[6] = 1;
	t[7] = 8;
	put64(t + 8, 2);
	put64(t + 16, 2);
	put64(t + 24, TEXT);
	put64(t + 32, NAMES);
	put64(t + 40, UNITS);
	put64(t + 48, FILES);
	put64(t + 56, VALUES);
	put64(t + 64, FUNCTIONS);
	memcpy(t + NAMES, "main.f\0runtime.goexit", 22);
	put32(t + UNITS + 4, 3);
	memcpy(t + FILES, "xx\0/src/main.go", 16);
	memcpy(t + VALUES, values, sizeof(values));
	put32(t + FUNCTIONS, 0);
	put32(t + FUNCTIONS + 4, 24);
	put32(t + FUNCTIONS + 8, 0x40);
	put32(t + FUNCTIONS + 12, 72);
	put32(t + FUNCTIONS + 16, 0x80);
	put_function(t + FUNCTIONS + 24, 0, 0, 1, 0);
	put_function(t + FUNCTIONS + 72, 0x40, 7, 6, DWUNW_PCLN_TOP);
}

static void test_what_it_says(void **state)
{
	uint8_t bytes[SIZE];
	struct dwunw_pclntab t;
	struct dwunw_pcln_function f;
	const char *file;
	uint32_t line;
	int32_t frame;

	(void)state;
	make_table(bytes);
	assert_true(dwunw_pclntab_open(&t, bytes, SIZE));
	assert_true(dwunw_pclntab_find(&t, TEXT + 0x3f, &f));
	assert_string_equal(f.name, "main.f");
	assert_true(f.start == TEXT && f.end == TEXT + 0x40 && !f.flags);
	assert_true(dwunw_pclntab_frame(&t, &f, TEXT + 3, &frame) && frame == 0);
	assert_true(dwunw_pclntab_frame(&t, &f, TEXT + 4, &frame) && frame == 24);
	assert_true(dwunw_pclntab_line(&t, &f, TEXT + 7, &file, &line) && line == 11);
	assert_string_equal(file, "/src/main.go");
	assert_true(dwunw_pclntab_line(&t, &f, TEXT + 8, &file, &line) && line == 12);
	assert_true(dwunw_pclntab_find(&t, TEXT + 0x40, &f));
	assert_string_equal(f.name, "runtime.goexit");
	assert_int_equal(f.flags, DWUNW_PCLN_TOP);
	assert_false(dwunw_pclntab_find(&t, TEXT + 0x80, &f));
	assert_false(dwunw_pclntab_find(&t, TEXT - 1, &f));
}

/* Ask all that can be asked of the @len bytes at @bytes, in memory of just that size. */
static void ask_all(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct dwunw_pclntab t;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	dwunw_pclntab_open(&t, copy, len);
	for (uint64_t addr = TEXT - 8; addr < TEXT + 0x90; addr += 4) {
		struct dwunw_pcln_function f;
		const char *file;
		uint32_t line;
		int32_t frame;

		if (!dwunw_pclntab_find(&t, addr, &f))
			continue;
		assert_true(strlen(f.name) < len && addr >= f.start && addr < f.end);
		if (dwunw_pclntab_frame(&t, &f, addr, &frame))
			assert_true(frame >= 0 && frame % 8 == 0);
		if (dwunw_pclntab_line(&t, &f, addr, &file, &line))
			assert_true(strlen(file) < len);
	}
	free(copy);
}

static void test_cut_anywhere(void **state)
{
	uint8_t bytes[SIZE];

	(void)state;
	make_table(bytes);
	for (size_t len = 0; len <= SIZE; len++)
		ask_all(bytes, len);
}

static void test_any_byte_wrong(void **state)
{
	static const uint8_t wrong[] = {0, 1, 0x7f, 0x80, 0xff};
	uint8_t bytes[SIZE];

	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		for (size_t k = 0; k < sizeof(wrong); k++) {
			make_table(bytes);
			bytes[i] = wrong[k];
			ask_all(bytes, SIZE);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_it_says),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_any_byte_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
