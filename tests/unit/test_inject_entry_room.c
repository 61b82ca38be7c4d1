/* test_inject_entry_room.c - a jump needs bytes of its own, within reach, and as the file has them
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/inject/entry.h"
#include "tests/unit/inject_plan.h"

/* A function whose size is @size and behind which the next symbol is at @next, if not 0. */
static const char *plan_short(size_t size, size_t next, const uint8_t *bytes, size_t len)
{
	struct inject_entry e;

	return plan_exact(&e, (struct inject_code){.bytes = bytes,
						   .len = len,
						   .size = size,
						   .next = next ? AT + next : 0});
}

static void a_short_function_needs_padding(void **state)
{
	static const char too_short[] = "it is too short";

	(void)state;
	/* ret, and each kind of padding */
	assert_null(plan_short(1, 16, BYTES(0xc3, 0x0f, 0x1f, 0x44, 0, 0)));
	assert_null(plan_short(1, 16, BYTES(0xc3, 0xcc, 0xcc, 0xcc, 0xcc)));
	assert_null(plan_short(1, 16, BYTES(0xc3, 0, 0, 0, 0)));
	assert_null(plan_short(1, 16, BYTES(0xc3, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0)));
	assert_null(plan_short(2, 5, BYTES(0xeb, 0x70, 0x66, 0x90, 0x90)));
	/* What is something else, or another's; zeroes within a function are not known to be
	 * padding
	 */
	assert_string_equal(plan_short(1, 16, BYTES(0xc3, 0x55, 0x90, 0x90, 0x90)), too_short);
	assert_string_equal(plan_short(1, 16, BYTES(0xc3, 0x90, 0x90, 0x90, 0x55)), too_short);
	assert_string_equal(plan_short(1, 4, BYTES(0xc3, 0x90, 0x90, 0x90, 0x90)), too_short);
	assert_string_equal(plan_short(1, 0, BYTES(0xc3, 0x90, 0x90, 0x90, 0x90)), too_short);
	assert_string_equal(plan_short(0, 0, BYTES(0xc3, 0x90, 0x90, 0x90, 0x90)), too_short);
	assert_string_equal(plan_short(1, 16, BYTES(0xc3, 0x90, 0x90, 0x90)), too_short);
	assert_string_equal(plan_short(5, 16, BYTES(0xc3, 0, 0, 0, 0)), too_short);
	/* It goes on into the next function, or its last instruction does */
	assert_string_equal(plan_short(2, 16, BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0xc3)),
			    too_short);
	assert_string_equal(plan_short(3, 16, BYTES(0x55, 0xb8, 0, 0, 0, 0, 0xc3)), too_short);
	/* Another function begins within the jump */
	assert_string_equal(plan_short(6, 4, BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0xc3)), too_short);
	assert_null(plan_short(6, 5, BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0xc3)));
	/* jmp 8; padding; jmp into it */
	assert_string_equal(
		plan_short(10, 16,
			   BYTES(0xeb, 0x06, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xeb, 0xfa)),
		"it jumps into its first bytes");
}

static void a_function_of_unknown_size_ends_where_nothing_leads_on(void **state)
{
	static const char back[] = "it jumps back to its beginning";

	(void)state;
	/* ret behind 5 bytes; another function that jumps to this one */
	assert_null(plan_short(0, 0, BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0xc3, 0xeb, 0xf8)));
	/* je over the ret: the jump is of the same function */
	assert_string_equal(
		plan_short(0, 0, BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0x74, 0x01, 0xc3, 0xeb, 0xf6)),
		back);
	/* But into the changed bytes nothing may jump at all */
	assert_string_equal(plan_short(0, 0, BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0xc3, 0xeb, 0xf9)),
			    "it jumps into its first bytes");
	/* What is no instruction ends it, but not before a return */
	assert_null(plan_short(0, 0, BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0xc3, 0x06)));
	assert_string_equal(plan_short(0, 0,
				       BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0x06, 0, 0, 0, 0, 0, 0,
					     0, 0, 0, 0, 0, 0, 0, 0)),
			    "it contains bytes that are not an instruction");
	/* The end of what was read */
	assert_null(plan_short(0, 0, BYTES(0x55, 0x55, 0x55, 0x55, 0x55, 0xb8, 0, 0)));
}

static void what_is_not_as_in_the_file_is_refused(void **state)
{
	/* push %rbp; sub $0x1000,%rsp; jmp 1, or jmp 8 */
	static const uint8_t file[] = {0x55, 0x48, 0x81, 0xec, 0, 0x10, 0, 0, 0xeb, 0xf7},
			     good[] = {0x55, 0x48, 0x81, 0xec, 0, 0x10, 0, 0, 0xeb, 0xfe};
	static const char why[] = "it differs from its file in its first bytes: a breakpoint, a "
				  "uprobe or another program's jump may be there";
	static const uint8_t jump[] = {0xe9, 0, 0, 0, 1};
	uint8_t now[sizeof(good)];
	struct inject_code code = {
		.bytes = now, .file = good, .len = sizeof(now), .size = sizeof(now)};
	struct inject_entry e;

	(void)state;
	memcpy(now, good, sizeof(now));
	assert_null(plan_exact(&e, code));
	memcpy(now, jump, sizeof(jump));
	assert_string_equal(plan_exact(&e, code), why);
	memcpy(now, good, sizeof(now));
	now[0] = 0xcc;
	assert_string_equal(plan_exact(&e, code), "it has a breakpoint in its first bytes");
	now[0] = good[0];
	now[7] = 1; /* not changed by the jump, but moved */
	assert_string_equal(plan_exact(&e, code), why);
	now[7] = good[7];
	/* What a breakpoint hides, the file says. */
	now[8] = 0xcc;
	assert_null(plan_exact(&e, code));
	code.file = file;
	assert_string_equal(plan_exact(&e, code), "it jumps into its first bytes");
}

static void what_all_code_jumps_to_is_refused(void **state)
{
	static const uint8_t function[] = {0x55, 0x55, 0x55, 0x55, 0x55, 0xc3};
	uint8_t text[256] = {0};
	const struct inject_code code = {.at = AT,
					 .bytes = function,
					 .len = sizeof(function),
					 .size = sizeof(function),
					 .text = text,
					 .text_at = AT - 128,
					 .text_len = sizeof(text)};

	(void)state;
	/* A jump, a call and a conditional jump of 32 bits, which end 20 bytes behind AT */
	for (int64_t to = -1; to <= 5; to++) {
		const char *expected =
			to > 0 && to < 5 ? "other code jumps into its first bytes" : NULL;
		static const uint8_t opcode[][2] = {{0x55, 0xe9}, {0x55, 0xe8}, {0x0f, 0x8f}};

		for (size_t i = 0; i < 3; i++) {
			int32_t rel32 = (int32_t)(to - 20);
			struct inject_entry e;
			const char *why;

			memcpy(text + 128 + 14, opcode[i], 2);
			memcpy(text + 128 + 16, &rel32, 4);
			why = inject_entry_plan(&e, &code, SLOT, MOVED);
			assert_int_equal(!why, !expected);
			if (why)
				assert_string_equal(why, expected);
		}
	}
}

static void the_jump_has_to_be_on_one_page(void **state)
{
	static const uint8_t bytes[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x55, 0x55, 0x55, 0x55, 0xc3};
	struct inject_code code = {.bytes = bytes, .len = sizeof(bytes), .size = sizeof(bytes)};
	struct inject_entry e;

	(void)state;
	for (size_t at = 0; at < 20; at++) {
		const char *why;

		code.at = AT - 16 + at; /* the jump is 4 bytes behind */
		why = inject_entry_plan(&e, &code, SLOT, MOVED);
		if (at < 8 || at >= 12)
			assert_null(why);
		else
			assert_string_equal(why,
					    "its first bytes are on two pages, which cannot be "
					    "written at once");
	}
}

static void what_is_too_far_is_refused(void **state)
{
	static const char far[] = "it is too far from the recorder's code, or what it refers to is";
	/* mov 0x7fffff00(%rip),%eax; jmp 0x7fffff00 */
	static const uint8_t load[] = {0x8b, 0x05, 0x00, 0xff, 0xff, 0x7f, 0xc3};
	static const uint8_t jump[] = {0xe9, 0x00, 0xff, 0xff, 0x7f};
	static const uint8_t plain[] = {0x55, 0x55, 0x55, 0x55, 0x55, 0xc3};
	const uint64_t gib2 = 1ull << 31;
	struct inject_code code = {.at = AT + gib2, .bytes = plain, .len = 6, .size = 6};
	struct inject_entry e;

	(void)state;
	/* The jump ends at code.at + 5; the one back ends at @moved_at + 10. */
	assert_null(inject_entry_plan(&e, &code, code.at + 5 + gib2 - 1, code.at + 64));
	assert_string_equal(inject_entry_plan(&e, &code, code.at + 5 + gib2, code.at + 64), far);
	assert_null(inject_entry_plan(&e, &code, code.at + 5 - gib2, code.at + 64));
	assert_string_equal(inject_entry_plan(&e, &code, code.at + 4 - gib2, code.at + 64), far);
	assert_null(inject_entry_plan(&e, &code, code.at, code.at - 5 + gib2));
	assert_string_equal(inject_entry_plan(&e, &code, code.at, code.at - 4 + gib2), far);
	code.bytes = load;
	code.len = code.size = sizeof(load);
	assert_null(inject_entry_plan(&e, &code, code.at, code.at + 64));
	assert_null(inject_entry_plan(&e, &code, code.at, code.at - 255));
	assert_string_equal(inject_entry_plan(&e, &code, code.at, code.at - 256), far);
	code.bytes = jump;
	code.len = code.size = sizeof(jump);
	assert_null(inject_entry_plan(&e, &code, code.at, code.at - 255));
	assert_string_equal(inject_entry_plan(&e, &code, code.at, code.at - 256), far);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_short_function_needs_padding),
		cmocka_unit_test(a_function_of_unknown_size_ends_where_nothing_leads_on),
		cmocka_unit_test(what_is_not_as_in_the_file_is_refused),
		cmocka_unit_test(what_all_code_jumps_to_is_refused),
		cmocka_unit_test(the_jump_has_to_be_on_one_page),
		cmocka_unit_test(what_is_too_far_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
