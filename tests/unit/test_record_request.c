/* test_record_request.c - what a recorder understands of what it is sent, and that it is nothing
 * else
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record/control/request.h"

static struct control_request right(const char *line)
{
	struct control_request r;

	assert_int_equal(control_parse(&r, line, strlen(line)), 0);
	return r;
}

static struct choice choice(const char *line)
{
	struct control_request r = right(line);

	assert_int_equal(r.verb, CONTROL_CHOOSE);
	return r.choice;
}

static void requests_are_understood(void **state)
{
	struct choice c;

	(void)state;
	assert_int_equal(right("status").verb, CONTROL_STATUS);
	assert_int_equal(right("pids").verb, CONTROL_PIDS);
	assert_int_equal(right("switch").verb, CONTROL_SWITCH);
	assert_int_equal(right("records 12").verb, CONTROL_RECORDS);
	assert_int_equal(right("records 12").choice.pid, 12);
	assert_int_equal(right("mark").verb, CONTROL_MARK);
	assert_string_equal(right("mark").text, "");
	assert_string_equal(right("mark two  words ").text, "two  words ");
	c = choice("all counted");
	assert_true(c.of == CHOICE_ALL && !c.recorded);
	c = choice("thread 2147483647 recorded");
	assert_true(c.of == CHOICE_THREAD && c.recorded && c.tid == INT32_MAX);
	c = choice("process 7 counted");
	assert_true(c.of == CHOICE_PROCESS && !c.recorded && c.pid == 7);
	c = choice("site 7 ffffffffffffff00 ff recorded");
	assert_true(c.of == CHOICE_SITE && c.pid == 7 && c.start == UINT64_MAX - 255 &&
		    c.size == 255 && c.recorded);
	assert_string_equal(c.name, "");
	c = choice("site 7 100 1 counted ns::fun(int, long)");
	assert_string_equal(c.name, "ns::fun(int, long)");
	c = choice("passage 7 100 9 3ff");
	assert_true(c.of == CHOICE_PASSAGE && c.pid == 7 && c.start == 256 && c.size == 9 &&
		    c.up == CHOICE_MOST_UP);
	c = choice("trigger site 5");
	assert_true(c.of == CHOICE_TRIGGER && c.trigger == TRIGGER_SITE && c.bytes == 5);
	assert_true(choice("trigger process none").bytes == TRIGGER_NEVER);
	assert_true(choice("trigger thread 9223372036854775807").bytes == TRIGGER_NEVER);
}

static void all_else_is_refused(void **state)
{
	static const char *const lines[] = {
		"",
		" ",
		"all",
		"all ",
		"all Counted",
		"all counted ",
		" all counted",
		"all  counted",
		"thread counted",
		"thread 0 counted",
		"thread -1 counted",
		"thread +1 counted",
		"thread 0x1 counted",
		"thread 2147483648 counted",
		"thread 1 counted 2",
		"process 1",
		"site 1 0 1 counted",
		"site 1 1 0 counted",
		"site 1 ffffffffffffffff 1 counted",
		"site 1 1ffffffffffffffff 1 counted",
		"site 1 g 1 counted",
		"passage 1 1 1",
		"passage 1 1 1 0",
		"passage 1 1 1 400",
		"passage 1 1 1 8 x",
		"passage 1 ffffffffffffffff 1 8",
		"trigger none",
		"trigger all 1",
		"trigger thread 0",
		"trigger thread -1",
		"trigger thread 9223372036854775808",
		"trigger thread none 1",
		"records",
		"records 0",
		"status 1",
		"switch now",
		"marks",
		"mark tab\there",
		"mark \x7f",
	};
	struct control_request r;
	char line[CONTROL_MAX_MARK + 7];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_not_equal(control_parse(&r, lines[i], strlen(lines[i])), 0);
	assert_int_not_equal(control_parse(&r, "switch\0", 7), 0);
	memset(line, 'x', sizeof(line));
	memcpy(line, "mark ", 5);
	assert_int_equal(control_parse(&r, line, CONTROL_MAX_MARK + 5), 0);
	assert_int_equal(strlen(r.text), CONTROL_MAX_MARK);
	assert_int_not_equal(control_parse(&r, line, CONTROL_MAX_MARK + 6), 0);
}

/* Nothing is read behind the end, nor written behind the room: for sanitizers to see. */
static void no_bytes_do_harm(void **state)
{
	static const char *const begins[] = {"mark ", "site 1 1 1 ", "thread ", "trigger site ",
					     ""};
	struct control_request r;

	(void)state;
	srandom(1);
	for (int i = 0; i < 100000; i++) {
		const char *begin = begins[i % 5];
		size_t len = strlen(begin) + (size_t)random() % 400;
		char *line = malloc(len);

		for (size_t at = 0; at < len; at++)
			line[at] = (char)random();
		memcpy(line, begin, strlen(begin));
		control_parse(&r, line, len);
		free(line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_understood),
		cmocka_unit_test(all_else_is_refused),
		cmocka_unit_test(no_bytes_do_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
