/* test_inject_entry.c - what is moved for a jump at a function's beginning, and what cannot be */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/inject/entry.h"
#include "tests/unit/inject_plan.h"

/* A function of all of @bytes. */
static const char *plan(struct inject_entry *out, const uint8_t *bytes, size_t len)
{
	return plan_exact(out, (struct inject_code){.bytes = bytes, .len = len, .size = len});
}

static void check_refused(const char *expected, const uint8_t *bytes, size_t len)
{
	struct inject_entry entry;
	const char *why = plan(&entry, bytes, len);

	assert_non_null(why);
	assert_string_equal(why, expected);
}

static void check_accepted(const uint8_t *bytes, size_t len)
{
	struct inject_entry entry;
	const char *why = plan(&entry, bytes, len);

	if (why)
		fail_msg("refused: %s", why);
}

static void the_change_is_exact(void **state)
{
	/* endbr64; push %r12; cmpb $1,0x10(%rip); je +2; push %rbp; push %rbx; ret */
	static const uint8_t code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x54, 0x80, 0x3d, 0x10, 0,
				       0,    0,	   0x01, 0x74, 0x02, 0x55, 0x53, 0xc3, 0,    0};
	/* jmp rel32 to SLOT: 0x100000 - 9 */
	static const uint8_t after[] = {0xe9, 0xf7, 0xff, 0x0f, 0x00};
	/* To the same byte, AT + 29: from MOVED + 9; and back to AT + 13: from MOVED + 14. */
	static const uint8_t moved[] = {0x41, 0x54, 0x80, 0x3d, 0x14, 0x00, 0xe0,
					0xff, 0x01, 0xe9, 0xff, 0xff, 0xdf, 0xff};
	struct inject_entry e;

	(void)state;
	assert_null(plan_exact(
		&e, (struct inject_code){.bytes = code, .len = sizeof(code), .size = 18}));
	assert_int_equal(e.at, AT + 4);
	assert_memory_equal(e.before, code + 4, INJECT_JUMP);
	assert_memory_equal(e.after, after, INJECT_JUMP);
	assert_int_equal(e.covered, 9);
	assert_int_equal(e.nr_moved, sizeof(moved));
	assert_memory_equal(e.moved, moved, sizeof(moved));
}

static void short_jumps_become_long_ones(void **state)
{
	static const uint8_t code[] = {0x74, 0x10, 0x7f, 0x10, 0xeb, 0x10, 0x90, 0x90, 0x90,
				       0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
				       0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3};
	static const uint8_t moved[] = {0x0f, 0x84, 0x0c, 0x00, 0xe0, 0xff, 0x0f, 0x8f, 0x08,
					0x00, 0xe0, 0xff, 0xe9, 0x05, 0x00, 0xe0, 0xff};
	struct inject_entry e;

	(void)state;
	assert_null(plan(&e, code, sizeof(code)));
	assert_int_equal(e.covered, 6);
	assert_int_equal(e.nr_moved, sizeof(moved)); /* nothing goes back */
	assert_memory_equal(e.moved, moved, sizeof(moved));
}

static void the_longest_instructions_fit(void **state)
{
	/* jc, jc, and mov $imm32,disp32(%rax,%rax) with 4 prefixes: 15 bytes */
	static const uint8_t code[] = {0x72, 0x11, 0x72, 0x0f, 0x2e, 0x2e, 0x2e,
				       0x64, 0xc7, 0x84, 0x00, 1,    2,	   3,
				       4,    5,	   6,	 7,    8,    0xc3, 0xc3};
	struct inject_entry e;

	(void)state;
	assert_null(plan(&e, code, sizeof(code)));
	assert_int_equal(e.covered, 19);
	assert_int_equal(e.nr_moved, INJECT_MOVED_MOST);
	assert_memory_equal(e.moved + 12, code + 4, 15);
}

static void what_cannot_be_moved_is_refused(void **state)
{
	static const char calls[] = "it calls a function in its first bytes",
			  near[] = "it has a jump in its first bytes that leads only near",
			  kernel[] = "it enters the kernel in its first bytes",
			  traps[] = "it traps in its first bytes",
			  breakpoint[] = "it has a breakpoint in its first bytes",
			  segment[] = "it leaves its code segment in its first bytes";

	(void)state;
	check_refused(calls, BYTES(0xe8, 0, 1, 0, 0, 0xc3));
	check_refused(calls, BYTES(0x50, 0xff, 0xd0, 0x58, 0xc3, 0xc3)); /* push; call *%rax */
	check_refused(calls, BYTES(0xff, 0x15, 0, 1, 0, 0, 0xc3));	 /* call *256(%rip) */
	check_refused(calls, BYTES(0x55, 0x55, 0x55, 0x55, 0xe8, 0, 0, 0, 0, 0xc3));
	check_refused(near, BYTES(0xe2, 0x03, 0x90, 0x90, 0x90, 0xc3));	  /* loop */
	check_refused(near, BYTES(0xe1, 0x03, 0x90, 0x90, 0x90, 0xc3));	  /* loope */
	check_refused(near, BYTES(0xe3, 0x03, 0x90, 0x90, 0x90, 0xc3));	  /* jrcxz */
	check_refused(near, BYTES(0x67, 0xe3, 0x02, 0x90, 0x90, 0xc3));	  /* jecxz */
	check_refused(kernel, BYTES(0x89, 0xf8, 0x0f, 0x05, 0x90, 0xc3)); /* syscall */
	check_refused(kernel, BYTES(0x89, 0xf8, 0xcd, 0x80, 0x90, 0xc3)); /* int $0x80 */
	check_refused(kernel, BYTES(0x0f, 0x34, 0x90, 0x90, 0x90, 0xc3)); /* sysenter */
	check_refused(traps, BYTES(0x0f, 0x0b, 0x90, 0x90, 0x90, 0xc3));  /* ud2 */
	check_refused(traps, BYTES(0x0f, 0xff, 0xc0, 0x90, 0x90, 0xc3));  /* ud0 */
	check_refused(traps, BYTES(0x0f, 0xb9, 0xc0, 0x90, 0x90, 0xc3));  /* ud1 */
	check_refused(breakpoint, BYTES(0xcc, 0x90, 0x90, 0x90, 0x90, 0xc3));
	check_refused(breakpoint, BYTES(0xf1, 0x90, 0x90, 0x90, 0x90, 0xc3));
	check_refused(breakpoint, BYTES(0x55, 0x55, 0xcc, 0x55, 0x55, 0xc3));
	check_refused(breakpoint,
		      BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0xcc, 0x90, 0x90, 0x90, 0x90, 0xc3));
	check_refused(segment, BYTES(0xff, 0x2f, 0x90, 0x90, 0x90, 0xc3)); /* ljmp *(%rdi) */
	check_refused(segment, BYTES(0xcb, 0x90, 0x90, 0x90, 0x90, 0xc3)); /* lret */
	check_refused("it begins a transaction in its first bytes",
		      BYTES(0xc7, 0xf8, 0, 0, 0, 0, 0xc3)); /* xbegin */
	check_refused("it has a place to jump to in its first bytes",
		      BYTES(0x90, 0xf3, 0x0f, 0x1e, 0xfa, 0xc3)); /* nop; endbr64 */
	check_refused("it has an address of 32 bits in its first bytes",
		      BYTES(0x67, 0x8b, 0x05, 0, 0, 0, 0, 0xc3)); /* mov 0(%eip),%eax */
	check_refused("it has a jump of 16 bits in its first bytes",
		      BYTES(0x66, 0xe9, 0, 0, 0, 0, 0xc3));
	check_refused("it contains bytes that are not an instruction",
		      BYTES(0x06, 0x90, 0x90, 0x90, 0x90, 0xc3)); /* push %es */
}

static void what_needs_privileges_is_refused(void **state)
{
	static const char why[] = "it needs privileges in its first bytes";

	(void)state;
	check_refused(why, BYTES(0xf4, 0x90, 0x90, 0x90, 0x90, 0xc3)); /* hlt */
	check_refused(why, BYTES(0x0f, 0x22, 0xd8, 0x90, 0x90, 0xc3)); /* mov %rax,%cr3 */
	check_refused(why, BYTES(0x0f, 0x01, 0xf8, 0x90, 0x90, 0xc3)); /* swapgs */
	check_refused(why, BYTES(0x0f, 0x30, 0x90, 0x90, 0x90, 0xc3)); /* wrmsr */
	check_refused(why, BYTES(0xec, 0x90, 0x90, 0x90, 0x90, 0xc3)); /* in (%dx),%al */
	check_refused(why, BYTES(0x6c, 0x90, 0x90, 0x90, 0x90, 0xc3)); /* insb */
	check_accepted(BYTES(0x0f, 0x31, 0x90, 0x90, 0x90, 0xc3));     /* rdtsc */
	check_accepted(BYTES(0xf3, 0x48, 0x0f, 0xae, 0xc0, 0xc3));     /* rdfsbase %rax */
	check_accepted(BYTES(0x0f, 0x01, 0xd0, 0x90, 0x90, 0xc3));     /* xgetbv */
}

static void jumps_into_the_changed_bytes_are_refused(void **state)
{
	static const char into[] = "it jumps into its first bytes",
			  back[] = "it jumps back to its beginning";

	(void)state;
	/* push %rbp (six times), and from 6 on: jmp 1, jmp 4, jmp 5, jne 2 with 32 bits, call 3 */
	check_refused(into, BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xeb, 0xf9));
	check_refused(into, BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xeb, 0xfc));
	check_accepted(BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xeb, 0xfd));
	check_refused(into, BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x0f, 0x85, 0xf6, 0xff, 0xff,
				  0xff, 0xc3));
	check_refused(into, BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xe8, 0xf8, 0xff, 0xff, 0xff,
				  0xc3));
	/* jrcxz 1; xbegin 1 */
	check_refused(into, BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xe3, 0xf9, 0xc3));
	check_refused(into, BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xc7, 0xf8, 0xf5, 0xff, 0xff,
				  0xff, 0xc3));
	/* The moved instructions: je 3 over push %rbp, je 0 */
	check_refused(into, BYTES(0x74, 0x01, 0x55, 0x55, 0x55, 0x55, 0xc3));
	check_refused(back, BYTES(0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3));
	/* jmp 0 */
	check_refused(back, BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xeb, 0xf8));
	/* The same behind endbr64: jmp 0, jmp 4, jmp 5, jmp 9 */
	check_refused(back,
		      BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x55, 0x55, 0x55, 0x55, 0xeb, 0xf5));
	check_refused(back,
		      BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x55, 0x55, 0x55, 0x55, 0xeb, 0xf9));
	check_refused(into,
		      BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x55, 0x55, 0x55, 0x55, 0xeb, 0xfa));
	check_accepted(BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x55, 0x55, 0x55, 0x55, 0xeb, 0xfe));
	/* A call of itself */
	check_accepted(
		BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xe8, 0xf5, 0xff, 0xff, 0xff, 0xc3));
}

static void all_of_a_function_has_to_be_known(void **state)
{
	static const uint8_t code[] = {0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x06, 0xc3};
	struct inject_entry e;

	(void)state;
	check_refused("it contains bytes that are not an instruction", code, sizeof(code));
	assert_string_equal(
		plan_exact(&e, (struct inject_code){.bytes = code, .len = 6, .size = 7}),
		"its code cannot be read to its end");
}

/* Whatever bytes a function has: nothing outside of them is read, and what is moved fits. */
static void any_bytes_are_survived(void **state)
{
	uint64_t x = 88172645463325252ull;
	size_t accepted = 0;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint8_t bytes[24];
		struct inject_code code = {.bytes = bytes};
		struct inject_entry e;

		for (size_t k = 0; k < sizeof(bytes); k++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			bytes[k] = (uint8_t)(x >> 32);
		}
		code.len = x % sizeof(bytes) + 1;
		code.size = i % 3 ? x >> 8 & 15 : 0;
		code.next = i % 2 ? AT + 16 : 0;
		if (plan_exact(&e, code))
			continue;
		assert_in_range(e.covered, 1, 19);
		assert_in_range(e.nr_moved, 1, INJECT_MOVED_MOST);
		accepted++;
	}
	assert_true(accepted > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_change_is_exact),
		cmocka_unit_test(short_jumps_become_long_ones),
		cmocka_unit_test(the_longest_instructions_fit),
		cmocka_unit_test(what_cannot_be_moved_is_refused),
		cmocka_unit_test(what_needs_privileges_is_refused),
		cmocka_unit_test(jumps_into_the_changed_bytes_are_refused),
		cmocka_unit_test(all_of_a_function_has_to_be_known),
		cmocka_unit_test(any_bytes_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
