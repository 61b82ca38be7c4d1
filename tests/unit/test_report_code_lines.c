/* test_report_code_lines.c - lines of places in interpreted functions
 *
 * The tables and lines are CPython's own, of a function f() that begins in line 300, as these print
 * them: code.co_lnotab and dis.findlinestarts(code) of 3.8, code.co_linetable and code.co_lines()
 * of 3.10 and 3.11.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/trace/code_lines.h"

/* The instructions from start up to end have that line; 0: none. */
struct part {
	uint32_t start, end, line;
};

static void assert_lines(enum mlk_line_table kind, const uint8_t *table, size_t len,
			 const struct part *parts, size_t nr)
{
	const struct mlk_code code = {
		.first_line = 300, .line_table = kind, .lines = table, .lines_len = (uint32_t)len};

	for (size_t i = 0; i < nr; i++)
		for (uint32_t at = parts[i].start; at < parts[i].end; at += 2)
			assert_int_equal(code_line(&code, at), parts[i].line);
}

#define ASSERT_LINES(kind, table, parts) \
	assert_lines(kind, table, sizeof(table), parts, sizeof(parts) / sizeof((parts)[0]))

static void lines_of_3_8(void **state)
{
	static const uint8_t table[] = {0x00, 0x02, 0x04, 0x01, 0x12, 0x02, 0x02, 0x01, 0x02, 0xff,
					0x04, 0x02, 0x04, 0x01, 0x08, 0x01, 0x04, 0x01, 0x02, 0xff,
					0x06, 0x02, 0x02, 0x01, 0x0a, 0x01, 0x0e, 0x01, 0x06, 0x01};
	static const struct part parts[] = {
		{0, 4, 302},   {4, 22, 303},  {22, 24, 305}, {24, 26, 306}, {26, 30, 305},
		{30, 34, 307}, {34, 42, 308}, {42, 46, 309}, {46, 48, 310}, {48, 54, 309},
		{54, 56, 311}, {56, 66, 312}, {66, 80, 313}, {80, 86, 314}, {86, 90, 315}};

	(void)state;
	ASSERT_LINES(MLK_LINES_CPYTHON_38, table, parts);
}

static void lines_of_3_10(void **state)
{
	static const uint8_t table[] = {0x04, 0x02, 0x12, 0x01, 0x02, 0x02, 0x02, 0x01, 0x04,
					0xff, 0x04, 0x02, 0x08, 0x01, 0x04, 0x01, 0x02, 0x01,
					0x04, 0xff, 0x04, 0xfe, 0x02, 0x04, 0x08, 0x01, 0x04,
					0x03, 0x0c, 0xfe, 0x02, 0x01, 0x04, 0x01, 0x02, 0xfe};
	static const struct part parts[] = {
		{0, 4, 302},   {4, 22, 303},  {22, 24, 305}, {24, 26, 306}, {26, 30, 305},
		{30, 34, 307}, {34, 42, 308}, {42, 46, 309}, {46, 48, 310}, {48, 52, 309},
		{52, 56, 307}, {56, 58, 311}, {58, 66, 312}, {66, 70, 315}, {70, 82, 313},
		{82, 84, 314}, {84, 88, 315}, {88, 90, 313}};

	(void)state;
	ASSERT_LINES(MLK_LINES_CPYTHON_310, table, parts);
}

static void lines_of_3_11(void **state)
{
	static const uint8_t table[] = {
		0x80, 0x00, 0xe0, 0x07, 0x08, 0xf0, 0x00, 0x04, 0x05, 0x13, 0xd8, 0x0c, 0x21, 0xd0,
		0x0c, 0x21, 0x9d, 0x05, 0x98, 0x61, 0x99, 0x08, 0x9c, 0x08, 0xd0, 0x0c, 0x21, 0xd1,
		0x0c, 0x21, 0xd4, 0x0c, 0x21, 0x88, 0x01, 0xe0, 0x10, 0x11, 0xd8, 0x10, 0x11, 0xf1,
		0x03, 0x01, 0x11, 0x12, 0xf0, 0x00, 0x01, 0x09, 0x13, 0xe0, 0x0a, 0x0b, 0xf0, 0x00,
		0x03, 0x05, 0x11, 0xd8, 0x08, 0x09, 0x88, 0x51, 0x89, 0x06, 0x88, 0x01, 0xdd, 0x0c,
		0x0d, 0x88, 0x61, 0xd8, 0x0e, 0x0f, 0xf1, 0x03, 0x01, 0x0d, 0x11, 0xf4, 0x00, 0x01,
		0x0d, 0x11, 0x88, 0x01, 0xf0, 0x05, 0x00, 0x0b, 0x0c, 0xf0, 0x00, 0x03, 0x05, 0x11,
		0xf0, 0x08, 0x03, 0x05, 0x0d, 0xdd, 0x08, 0x09, 0x89, 0x03, 0x8c, 0x03, 0x88, 0x03,
		0x88, 0x03, 0xf8, 0xdd, 0x0b, 0x15, 0xf0, 0x00, 0x01, 0x05, 0x0d, 0xf0, 0x00, 0x01,
		0x05, 0x0d, 0xf0, 0x00, 0x01, 0x05, 0x0d, 0xd8, 0x08, 0x0c, 0x88, 0x04, 0xf0, 0x03,
		0x01, 0x05, 0x0d, 0xf8, 0xf8, 0xf8, 0xe0, 0x0b, 0x0c, 0x80, 0x48};
	static const struct part parts[] = {
		{0, 2, 300},	 {2, 6, 302},	  {6, 56, 303},	  {56, 58, 305},
		{58, 60, 306},	 {60, 66, 305},	  {66, 70, 307},  {70, 80, 308},
		{80, 94, 309},	 {94, 96, 310},	  {96, 112, 309}, {112, 116, 307},
		{116, 118, 311}, {118, 148, 312}, {148, 150, 0},  {150, 168, 313},
		{168, 172, 314}, {172, 174, 313}, {174, 180, 0},  {180, 184, 315}};

	(void)state;
	ASSERT_LINES(MLK_LINES_CPYTHON_311, table, parts);
}

/* Of PHP and Ruby. */
static void a_place_may_be_the_line(void **state)
{
	const struct mlk_code code = {.first_line = 300, .line_table = MLK_LINES_PLACE};

	(void)state;
	assert_int_equal(code_line(&code, 47), 47);
}

/* Cut anywhere, a table tells lines as far as it goes, and then none or the last. */
static void a_table_may_end_anywhere(void **state)
{
	static const uint8_t table[] = {0x80, 0x00, 0xe0, 0x07, 0x08, 0xf0, 0x00, 0x04, 0x05, 0x13};
	struct mlk_code code = {.first_line = 300, .lines = table};

	(void)state;
	for (uint32_t kind = 0; kind < 6; kind++)
		for (uint32_t len = 0; len <= sizeof(table); len++) {
			code.line_table = kind;
			code.lines_len = len;
			for (uint32_t at = 0; at < 1000; at++)
				assert_true(code_line(&code, at) < 10000);
		}
	code.line_table = MLK_LINES_NONE;
	assert_int_equal(code_line(&code, 2), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_3_8),
		cmocka_unit_test(lines_of_3_10),
		cmocka_unit_test(lines_of_3_11),
		cmocka_unit_test(a_place_may_be_the_line),
		cmocka_unit_test(a_table_may_end_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
