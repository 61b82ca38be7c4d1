/* test_report_marks.c - which marks of a trace are kept, and how they are named */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/trace/trace_marks.h"

static void note(struct trace_marks *marks, uint64_t time_ns, const char *text)
{
	const struct mlk_mark mark = {.time_ns = time_ns, .kind = MLK_MARK_TEXT, .text = text};

	assert_int_equal(trace_marks_note(marks, &mark), 0);
}

static void assert_sorted(const struct trace_marks *marks)
{
	for (size_t i = 1; i < marks->nr; i++)
		assert_true(marks->all[i - 1].time_ns <= marks->all[i].time_ns);
}

static void a_number_can_be_a_text(void **state)
{
	struct trace_marks marks = {0};

	(void)state;
	note(&marks, 20, "1");
	note(&marks, 10, "2026");
	note(&marks, 20, "0");
	assert_ptr_equal(trace_marks_find(&marks, "mark:1"), &marks.all[0]);
	assert_ptr_equal(trace_marks_find(&marks, "mark:2026"), &marks.all[0]);
	assert_ptr_equal(trace_marks_find(&marks, "mark:0"), &marks.all[2]);
	assert_string_equal(marks.all[1].text, "1"); /* of the same time, the earlier one */
	assert_null(trace_marks_find(&marks, "mark:4"));
	assert_null(trace_marks_find(&marks, "mark:99999999999999999999"));
	trace_marks_release(&marks);
}

static void an_order_that_is_far_wrong_costs_little(void **state)
{
	const size_t nr = 50000;
	struct trace_marks marks = {0};

	(void)state;
	for (size_t i = 0; i < nr; i++)
		note(&marks, nr - i, "");
	assert_int_equal(marks.nr, TRACE_MARKS_LATE + 1);
	assert_int_equal(marks.nr + marks.left_out, nr);
	assert_sorted(&marks);
	for (size_t i = 0; i < nr; i++)
		note(&marks, nr + (i ^ 7), "");
	assert_int_equal(marks.nr, TRACE_MARKS_LATE + 1 + nr);
	assert_sorted(&marks);
	trace_marks_release(&marks);
}

static void texts_and_marks_have_a_bound(void **state)
{
	struct trace_marks marks = {0};
	char text[4096];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i < 5000; i++)
		note(&marks, i, text);
	assert_int_equal(marks.nr, TRACE_MARKS_TEXT / sizeof(text));
	assert_int_equal(marks.nr + marks.left_out, 5000);
	trace_marks_release(&marks);
	for (size_t i = 0; i < TRACE_MARKS_MAX + 3; i++)
		note(&marks, i, "two");
	assert_int_equal(marks.nr, TRACE_MARKS_MAX);
	assert_int_equal(marks.left_out, 3);
	trace_marks_release(&marks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_can_be_a_text),
		cmocka_unit_test(an_order_that_is_far_wrong_costs_little),
		cmocka_unit_test(texts_and_marks_have_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
