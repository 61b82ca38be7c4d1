/* test_record_returns.c - following code to where it returns: what is found, and what is refused */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/code/returns.h"

#define START 0x1000u /* of the code, in its file */

/* The function is at the beginning of @text and @size bytes long; nothing lies behind. */
static const char *find(struct returns *out, const uint8_t *text, size_t len, uint64_t size)
{
	const struct returns_code code = {.text = text, .start = START, .len = len};

	memset(out, 0, sizeof(*out));
	return returns_find(out, &code, START, size);
}

#define FIND(out, text) find(out, text, sizeof(text), sizeof(text))

static void each_form_of_return_is_found(void **state)
{
	static const uint8_t text[] = {
		0xf3, 0x0f, 0x1e, 0xfa,	      /* endbr64 */
		0x74, 0x0a,		      /* 4: je 16 */
		0x75, 0x05,		      /* 6: jne 13 */
		0x31, 0xc0,		      /* 8: xor %eax,%eax */
		0xc2, 0x08, 0x00,	      /* 10: ret $8 */
		0xf3, 0xc3,		      /* 13: rep ret */
		0xc3,			      /* 15: ret, never reached */
		0x74, 0x02,		      /* 16: je 20 */
		0xf2, 0xc3,		      /* 18: bnd ret */
		0xb8, 0xc3, 0xc3, 0xc3, 0xc3, /* 20: mov $0xc3c3c3c3,%eax */
		0xc3,			      /* 25: ret */
	};
	static const uint64_t at[] = {10, 13, 18, 25};
	struct returns out;

	(void)state;
	assert_null(FIND(&out, text));
	assert_int_equal(out.nr, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(out.v[i].at, START + at[i]);
}

static void a_loop_and_a_call_are_followed(void **state)
{
	static const uint8_t text[] = {
		0xe8, 0x00, 0x00, 0x00, 0x00, /* call 5 */
		0xff, 0xc8,		      /* 5: dec %eax */
		0x75, 0xf7,		      /* 7: jne 0 */
		0xeb, 0x01,		      /* 9: jmp 12 */
		0xc3,			      /* 11: not reached */
		0xc3,			      /* 12: ret */
	};
	struct returns out;

	(void)state;
	assert_null(FIND(&out, text));
	assert_int_equal(out.nr, 1);
	assert_int_equal(out.v[0].at, START + 12);
}

/* What stands behind a call that ends the function is not of it. */
static void a_call_that_never_returns_ends_it(void **state)
{
	static const uint8_t text[] = {
		0x74, 0x01,		      /* je 3 */
		0xc3,			      /* 2: ret */
		0xe8, 0x00, 0x00, 0x00, 0x00, /* 3: call 8 */
		0xc3,			      /* 8: another's */
	};
	struct returns out;

	(void)state;
	assert_null(find(&out, text, sizeof(text), 8));
	assert_int_equal(out.nr, 1);
	assert_int_equal(out.v[0].at, START + 2);
}

static void what_is_found_is_added_once(void **state)
{
	static const uint8_t text[] = {0x90, 0xc3};
	const struct returns_code code = {.text = text, .start = START, .len = sizeof(text)};
	struct returns out = {0};

	(void)state;
	assert_null(returns_find(&out, &code, START, 2));
	assert_null(returns_find(&out, &code, START + 1, 1));
	assert_int_equal(out.nr, 1);
}

static void code_in_doubt_is_refused(void **state)
{
	static const uint8_t computed[] = {0xff, 0xe0, 0xc3};		 /* jmp *%rax */
	static const uint8_t no_instruction[] = {0x06, 0xc3};		 /* not in 64-bit mode */
	static const uint8_t cut[] = {0xb8, 0xc3};			 /* half of a mov */
	static const uint8_t runs_out[] = {0x90, 0x90};			 /* no end */
	static const uint8_t outside[] = {0xe9, 0x00, 0x01, 0x00, 0x00}; /* jmp 261 */
	static const uint8_t middle[] = {0x75, 0x01, 0xb8, 1, 2, 3, 0xc3, 0xc3}; /* jne 3 */
	static const uint8_t never[] = {0xeb, 0xfe};				 /* jmp 0 */
	static const uint8_t far[] = {0xcb};					 /* lret */
	static const uint8_t no_function[] = {0xeb, 0x00, 0xc3}; /* jmp behind its end */
	struct returns out;

	(void)state;
	assert_non_null(FIND(&out, computed));
	assert_non_null(FIND(&out, no_instruction));
	assert_non_null(FIND(&out, cut));
	assert_non_null(FIND(&out, runs_out));
	assert_non_null(FIND(&out, outside));
	assert_non_null(FIND(&out, middle));
	assert_non_null(FIND(&out, never));
	assert_non_null(FIND(&out, far));
	assert_non_null(find(&out, no_function, sizeof(no_function), 2));
	assert_int_equal(out.nr, 0);
}

static void what_only_jumps_is_forwarded(void **state)
{
	static const uint8_t text[] = {
		0xf3, 0x0f, 0x1e, 0xfa,	      /* endbr64 */
		0xeb, 0x02,		      /* 4: jmp 8 */
		0x0f, 0x0b,		      /* 6: ud2 */
		0xe9, 0x05, 0x00, 0x00, 0x00, /* 8: jmp 18 */
		0x74, 0xf1,		      /* 13: je 0, which does something */
		0xc3,			      /* 15: ret */
		0xff, 0xe0,		      /* 16: jmp *%rax */
		0x31, 0xc0,		      /* 18: xor %eax,%eax */
		0xc3,			      /* 20: ret */
		0xeb, 0xfe,		      /* 21: jmp 21 */
		0xe9, 0x00, 0x10, 0x00, 0x00, /* 23: jmp out of the code */
	};
	static const struct {
		uint64_t entry, to;
	} cases[] = {{0, 18}, {8, 18}, {13, 13}, {15, 15}, {16, 16}, {18, 18}, {21, 21}};
	const struct returns_code code = {.text = text, .start = START, .len = sizeof(text)};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(returns_forwarded(&code, START + cases[i].entry),
				 START + cases[i].to);
	assert_int_equal(returns_forwarded(&code, START + 23), START + 28 + 0x1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_form_of_return_is_found),
		cmocka_unit_test(a_loop_and_a_call_are_followed),
		cmocka_unit_test(a_call_that_never_returns_ends_it),
		cmocka_unit_test(what_is_found_is_added_once),
		cmocka_unit_test(code_in_doubt_is_refused),
		cmocka_unit_test(what_only_jumps_is_forwarded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
