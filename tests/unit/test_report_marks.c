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

/* The number of the one mark called @name; 0: there is none, or there are several. */
static size_t find(const struct trace_marks *marks, const char *name)
{
	size_t number = 0;

	return trace_marks_find(marks, name, &number, 1) == 1 ? number : 0;
}

static void marks_of_one_text_are_all_found(void **state)
{
	struct trace_marks marks = {0};
	size_t numbers[2];

	(void)state;
	note(&marks, 10, "x");
	note(&marks, 20, "y");
	note(&marks, 30, "x");
	note(&marks, 40, "x");
	assert_int_equal(trace_marks_find(&marks, "mark:x", numbers, 2), 3);
	assert_int_equal(numbers[0], 1);
	assert_int_equal(numbers[1], 3);
	assert_int_equal(find(&marks, "mark:y"), 2);
	trace_marks_release(&marks);
}

static void a_number_can_be_a_text(void **state)
{
	struct trace_marks marks = {0};

	(void)state;
	note(&marks, 20, "1");
	note(&marks, 10, "2026");
	note(&marks, 20, "0");
	assert_int_equal(find(&marks, "mark:1"), 1);
	assert_int_equal(find(&marks, "mark:2026"), 1);
	assert_int_equal(find(&marks, "mark:0"), 3);
	assert_string_equal(marks.all[1].text, "1"); /* of the same time, the earlier one */
	assert_int_equal(find(&marks, "mark:4"), 0);
	assert_int_equal(find(&marks, "mark:99999999999999999999"), 0);
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
		cmocka_unit_test(marks_of_one_text_are_all_found),
		cmocka_unit_test(an_order_that_is_far_wrong_costs_little),
		cmocka_unit_test(texts_and_marks_have_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
