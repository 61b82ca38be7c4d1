/* test_record_code_list.c - lines of perf maps, as runtimes write them and as nobody does */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/trace.h"
#include "record/generated/code_list.h"
#include "record/generated/frame_size.h"

static void check_line(const char *line, bool no_files, uint64_t start, uint64_t len,
		       const char *name)
{
	char *text = strdup(line);
	struct code_list list = {0};
	size_t taken;

	assert_non_null(text);
	assert_int_equal(code_list_read(&list, text, strlen(text), no_files, &taken), 0);
	assert_int_equal(taken, strlen(line));
	assert_int_equal(list.nr, 1);
	assert_int_equal(list.strange, 0);
	assert_int_equal(list.v[0].start, start);
	assert_int_equal(list.v[0].len, len);
	assert_string_equal(list.v[0].name, name);
	code_list_release(&list);
	free(text);
}

static void lines_of_runtimes_are_read(void **state)
{
	(void)state;
	check_line("7f3b04a01c40 1a4 JS:*handle /srv/app.js:12:3\n", false, 0x7f3b04a01c40, 0x1a4,
		   "JS:*handle /srv/app.js:12:3");
	check_line("0x00007F3b04a01c40 0x1A4 int java.lang.String.hashCode()\n", false,
		   0x7f3b04a01c40, 0x1a4, "int java.lang.String.hashCode()");
}

static void files_are_left_out_on_request(void **state)
{
	(void)state;
	check_line("10 1 JS:*handle /srv/app.js:12:3\n", true, 16, 1, "JS:*handle");
	check_line("10 1 JS:~get x file:///srv/a b.mjs:1:2\n", true, 16, 1, "JS:~get");
	check_line("10 1 JS:^emit node:events:465:44\n", true, 16, 1, "JS:^emit");
	check_line("10 1 Ljava/lang/Object;::<init>\n", true, 16, 1, "Ljava/lang/Object;::<init>");
	check_line("10 1 int java.lang.String.hashCode()\n", true, 16, 1,
		   "int java.lang.String.hashCode()");
	check_line("10 1 Builtin:ArrayMap\n", true, 16, 1, "Builtin:ArrayMap");
}

static void other_lines_are_counted(void **state)
{
	static const char lines[] = "\nx 1 y\n10 1\n10 1 \n10  1 x\n10 0 x\n-1 1 x\n"
				    "ffffffffffffffff 2 x\n11112222333344445 1 x\n0x 1 x\n";
	char *text = strdup(lines);
	struct code_list list = {0};
	size_t taken;

	(void)state;
	assert_non_null(text);
	assert_int_equal(code_list_read(&list, text, strlen(text), false, &taken), 0);
	assert_int_equal(taken, strlen(lines));
	assert_int_equal(list.nr, 0);
	assert_int_equal(list.strange, strlen(lines));
	code_list_release(&list);
	free(text);
}

static void a_line_without_its_end_waits(void **state)
{
	char text[] = "10 1 a\n20 1 b";
	struct code_list list = {0};
	size_t taken;

	(void)state;
	assert_int_equal(code_list_read(&list, text, strlen(text), false, &taken), 0);
	assert_int_equal(taken, 7);
	assert_int_equal(list.nr, 1);
	assert_int_equal(code_list_read(&list, text + 7, 0, false, &taken), 0);
	assert_int_equal(taken, 0);
	code_list_release(&list);
}

static void long_names_are_cut_and_a_nul_ends_one(void **state)
{
	char *text = malloc(10000);
	struct code_list list = {0};
	size_t taken;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', 10000);
	memcpy(text, "10 1 ", 5);
	memcpy(text + 9000, "\n20 1 a\0b\n", 11);
	assert_int_equal(code_list_read(&list, text, 9010, false, &taken), 0);
	assert_int_equal(taken, 9010);
	assert_int_equal(list.nr, 2);
	assert_int_equal(strlen(list.v[0].name), MLK_MAX_STRING);
	assert_string_equal(list.v[1].name, "a");
	code_list_release(&list);
	free(text);
}

/* What HotSpot of JDK 17 writes, disassembled by gdb. */
static void frames_of_hotspot_have_a_size(void **state)
{
	/* mov %eax,-0x14000(%rsp); push %rbp; sub $0x30,%rsp */
	uint8_t first[64] = {0x0f, 0x1f, 0x44, 0,    0,	   0x89, 0x84, 0x24, 0,
			     0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x30};
	/* the same, and mov %rsp,%rbp between: a frame pointer */
	uint8_t kept[64] = {0x89, 0x84, 0x24, 0,    0xc0, 0xfe, 0xff, 0x55,
			    0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 0x30};
	/* sub $0x18,%rsp; mov %rbp,0x10(%rsp) */
	uint8_t second[64] = {0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10};

	(void)state;
	assert_int_equal(frame_size(first, sizeof(first)), 0x38);
	assert_int_equal(frame_size(kept, sizeof(kept)), 0);
	assert_int_equal(frame_size(second, sizeof(second)), 0x18);
	assert_int_equal(frame_size(second, 8), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_runtimes_are_read),
		cmocka_unit_test(files_are_left_out_on_request),
		cmocka_unit_test(other_lines_are_counted),
		cmocka_unit_test(a_line_without_its_end_waits),
		cmocka_unit_test(frames_of_hotspot_have_a_size),
		cmocka_unit_test(long_names_are_cut_and_a_nul_ends_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
