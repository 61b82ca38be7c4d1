/* test_record_known_leaks.c - which code is understood to return an address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record/module/lsan_suppressions.h"

/* What the function at 0x1000 with this code returns; 0: it is not understood.  The bytes are
 * copied, so that a read behind them is found out. */
static uint64_t returned(const char *bytes, size_t len)
{
	uint8_t *code = malloc(len ? len : 1);
	uint64_t value = 0;
	bool clear;

	assert_non_null(code);
	memcpy(code, bytes, len);
	clear = lsan_suppressions_returned(code, len, 0x1000, &value);
	free(code);
	return clear ? value : 0;
}

#define RETURNED(code) returned(code, sizeof(code) - 1)

static void what_compilers_make_of_a_literal_is_understood(void **state)
{
	(void)state;
	assert_int_equal(RETURNED("\x48\x8d\x05\xa1\x0e\x00\x00\xc3"), 0x1000 + 7 + 0xea1);
	assert_int_equal(RETURNED("\x48\x8d\x05\xf9\xff\xff\xff\xc3"), 0x1000);
	assert_int_equal(RETURNED("\xf3\x0f\x1e\xfa\x48\x8d\x05\x10\x00\x00\x00\xc3"),
			 0x1000 + 4 + 7 + 0x10);
	assert_int_equal(RETURNED("\x55\x48\x89\xe5\x48\x8d\x05\x10\x00\x00\x00\x5d\xc3"),
			 0x1000 + 4 + 7 + 0x10);
	assert_int_equal(RETURNED("\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\xb8\x04\x90\x47\x00\xc9\xc3"),
			 0x479004);
	assert_int_equal(RETURNED("\x48\xc7\xc0\x04\x90\x47\x00\xc3"), 0x479004);
	assert_int_equal(RETURNED("\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08\xc3"),
			 0x0807060504030201);
	assert_int_equal(RETURNED("\xb8\x04\x90\x47\x00\xf3\xc3"), 0x479004); /* rep ret */
}

static void other_code_is_not(void **state)
{
	(void)state;
	assert_int_equal(RETURNED(""), 0);
	assert_int_equal(RETURNED("\xc3"), 0);
	assert_int_equal(RETURNED("\x48\x8b\x05\xa1\x0e\x00\x00\xc3"), 0);     /* a load */
	assert_int_equal(RETURNED("\x48\x8d\x05\xa1\x0e\x00\x00\x90\xc3"), 0); /* more code */
	assert_int_equal(RETURNED("\x48\x8d\x0d\xa1\x0e\x00\x00\xc3"), 0);     /* to rcx */
	assert_int_equal(RETURNED("\xe8\x04\x90\x47\x00\xc3"), 0);	       /* a call */
}

static void code_that_is_cut_anywhere_is_not(void **state)
{
	static const char code[] = "\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x48\xb8\x01\x02\x03\x04\x05"
				   "\x06\x07\x08\x5d\xc9\xf3\xc3";

	(void)state;
	assert_int_equal(RETURNED(code), 0x0807060504030201);
	for (size_t len = 0; len < sizeof(code) - 1; len++)
		assert_int_equal(returned(code, len), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_compilers_make_of_a_literal_is_understood),
		cmocka_unit_test(other_code_is_not),
		cmocka_unit_test(code_that_is_cut_anywhere_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
