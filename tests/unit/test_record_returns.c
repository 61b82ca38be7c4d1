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

static void check_sites(const struct returns *out, const struct returns_site *sites, size_t nr)
{
	assert_int_equal(out->nr, nr);
	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(out->v[i].at, sites[i].at);
		assert_int_equal(out->v[i].how, sites[i].how);
		assert_int_equal(out->v[i].reg, sites[i].reg);
		assert_int_equal(out->v[i].when, sites[i].when);
	}
}

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
	/* The jumps at 6 and 16 say the same as the `ret` that they lead to. */
	static const struct returns_site sites[] = {
		{START + 6, RETURNS_SOON, 0, 5},
		{START + 10, RETURNS_HERE, 0, 0},
		{START + 16, RETURNS_SOON, 0, 5},
		{START + 25, RETURNS_HERE, 0, 0},
	};
	struct returns out;

	(void)state;
	assert_null(FIND(&out, text));
	check_sites(&out, sites, 4);
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
	assert_int_equal(out.v[0].at, START + 9); /* the jump to 12 */
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
	assert_int_equal(out.v[0].at, START); /* the je, if it does not jump */
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

/* As the ways out of jemalloc's operator new are. */
static void jumps_that_only_return_tell_the_result(void **state)
{
	static const uint8_t text[] = {
		0x48, 0x85, 0xff,	   /* test %rdi,%rdi */
		0x74, 0x0a,		   /* 3: je 15 */
		0x48, 0x89, 0x16,	   /* 5: mov %rdx,(%rsi) */
		0x48, 0x8b, 0x06,	   /* 8: mov (%rsi),%rax */
		0x4c, 0x89, 0xd8,	   /* 11: mov %r11,%rax */
		0xc3,			   /* 14: ret */
		0x48, 0x85, 0xf6,	   /* 15: test %rsi,%rsi */
		0x0f, 0x82, 0x02, 0, 0, 0, /* 18: jb 26 */
		0xeb, 0xef,		   /* 24: jmp 9 - one too far, see below */
		0x31, 0xc0,		   /* 26: xor %eax,%eax */
		0xc3,			   /* 28: ret */
	};
	static const struct returns_site sites[] = {
		{START + 3, RETURNS_SOON, 11, 5},
		{START + 24, RETURNS_SOON, 11, RETURNS_ALWAYS},
		{START + 28, RETURNS_HERE, 0, 0},
	};
	uint8_t right[sizeof(text)];
	struct returns out;

	(void)state;
	memcpy(right, text, sizeof(text));
	right[25] = 0xee; /* jmp 8 */
	assert_null(FIND(&out, right));
	check_sites(&out, sites, 3);
	assert_non_null(FIND(&out, text)); /* into the middle of an instruction */
}

/* In each the `ret` is the last byte, and has to be probed itself. */
static void other_ways_are_probed_at_their_end(void **state)
{
	static const struct {
		uint8_t text[16], len;
	} cases[] = {
		{{0x74, 0x05, 0xe8, 0, 0, 0, 0, 0xc3}, 8}, /* je 7; call: one way tells nothing */
		{{0x74, 0x01, 0x58, 0x50, 0xc3}, 5},	   /* pop %rax; push: the stack */
		{{0x74, 0x00, 0xc3}, 3},		   /* je 2: it returns either way */
		{{0x74, 0x02, 0x31, 0xc0, 0xc3}, 5},	   /* xor %eax,%eax */
		{{0x74, 0x03, 0x48, 0x8b, 0x06, 0xc3}, 6}, /* mov (%rsi),%rax */
		{{0x74, 0x02, 0x89, 0xd8, 0xc3}, 5},	   /* mov %ebx,%eax: half of it */
		{{0x74, 0x03, 0x48, 0x89, 0xd8, 0xc3}, 6}, /* mov %rbx,%rax: not read there */
		{{0x74, 0x03, 0x48, 0x89, 0xc3, 0xc3}, 6}, /* mov %rax,%rbx: of the caller's */
		{{0x74, 0x02, 0x30, 0xe0, 0xc3}, 5},	   /* xor %ah,%al */
		{{0xf2, 0xe9, 0, 0, 0, 0, 0xc3}, 7},	   /* bnd jmp: not emulated */
		{{0xe3, 0x00, 0xc3}, 3},		   /* jrcxz */
		{{0x74, 0x02, 0x0f, 0x05, 0xc3}, 5},	   /* syscall */
		{{0x74, 0x02, 0x87, 0xc1, 0xc3}, 5},	   /* xchg %eax,%ecx */
		/* scasb; mov %rdi,%rax.  cmpsb; mov %rsi,%rax.  insb; mov %rdi,%rax. */
		{{0x74, 0x04, 0xae, 0x48, 0x89, 0xf8, 0xc3}, 7},
		{{0x74, 0x04, 0xa6, 0x48, 0x89, 0xf0, 0xc3}, 7},
		{{0x74, 0x04, 0x6c, 0x48, 0x89, 0xf8, 0xc3}, 7},
	};
	struct returns out;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_null(find(&out, cases[i].text, cases[i].len, cases[i].len));
		assert_true(out.nr >= 1);
		assert_int_equal(out.v[out.nr - 1].at, START + cases[i].len - 1);
		assert_int_equal(out.v[out.nr - 1].how, RETURNS_HERE);
	}
}

/* Where another probe is, which may come first or last. */
static void a_jump_with_a_probe_is_not_probed_again(void **state)
{
	static const uint8_t text[] = {0x74, 0x01, 0xc3, 0x90, 0xc3}; /* je 3; ret; nop; ret */
	static const uint64_t probed = START;
	const struct returns_code code = {
		.text = text, .start = START, .len = sizeof(text), .probed = &probed};
	struct returns_code with = code;
	struct returns out = {0};

	(void)state;
	assert_null(returns_find(&out, &code, START, sizeof(text)));
	/* One jump can tell of one way alone. */
	check_sites(&out,
		    (const struct returns_site[]){{START, RETURNS_SOON, 0, 5},
						  {START + 4, RETURNS_HERE, 0, 0}},
		    2);
	memset(&out, 0, sizeof(out));
	with.nr_probed = 1;
	assert_null(returns_find(&out, &with, START, sizeof(text)));
	check_sites(&out,
		    (const struct returns_site[]){{START + 2, RETURNS_HERE, 0, 0},
						  {START + 4, RETURNS_HERE, 0, 0}},
		    2);
}

/* Its call is noted where it begins, and is to be seen to return. */
static void a_function_with_a_probe_is_more_than_a_return(void **state)
{
	static const uint8_t text[] = {
		0xeb, 0x01,	  /* jmp 3 */
		0x90,		  /* 2: nop */
		0x48, 0x89, 0xf8, /* 3: mov %rdi,%rax, another function with a probe */
		0xc3,		  /* 6: ret */
	};
	static const uint64_t probed = START + 3;
	const struct returns_code code = {.text = text, .start = START, .len = sizeof(text)};
	struct returns_code with = code;
	struct returns out = {0};

	(void)state;
	assert_null(returns_find(&out, &code, START, sizeof(text)));
	check_sites(&out, &(const struct returns_site){START, RETURNS_SOON, 7, RETURNS_ALWAYS}, 1);
	memset(&out, 0, sizeof(out));
	with.probed = &probed;
	with.nr_probed = 1;
	assert_null(returns_find(&out, &with, START, sizeof(text)));
	check_sites(&out, &(const struct returns_site){START + 6, RETURNS_HERE, 0, 0}, 1);
}

/* What posix_memalign writes for its caller may not be there at the jump. */
static void what_is_returned_in_memory_is_there_at_the_end(void **state)
{
	static const uint8_t text[] = {
		0x74, 0x04,	  /* je 6 */
		0x48, 0x89, 0x0f, /* 2: mov %rcx,(%rdi) */
		0xc3,		  /* 5: ret */
		0x90,		  /* 6: nop */
		0x0f, 0x0b,	  /* 7: ud2 */
	};
	const struct returns_code code = {
		.text = text, .start = START, .len = sizeof(text), .by_memory = true};
	struct returns out = {0};

	(void)state;
	assert_null(FIND(&out, text));
	check_sites(&out, &(const struct returns_site){START, RETURNS_SOON, 0, 5}, 1);
	memset(&out, 0, sizeof(out));
	assert_null(returns_find(&out, &code, START, sizeof(text)));
	check_sites(&out, &(const struct returns_site){START + 5, RETURNS_HERE, 0, 0}, 1);
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
		cmocka_unit_test(jumps_that_only_return_tell_the_result),
		cmocka_unit_test(other_ways_are_probed_at_their_end),
		cmocka_unit_test(a_jump_with_a_probe_is_not_probed_again),
		cmocka_unit_test(a_function_with_a_probe_is_more_than_a_return),
		cmocka_unit_test(what_is_returned_in_memory_is_there_at_the_end),
		cmocka_unit_test(what_only_jumps_is_forwarded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
