/* test_report_code_name.c - names of generated code, as people call the functions */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "report/name/code_name.h"

static void names_are_taken_apart(void **state)
{
	static const struct {
		const char *text, *function, *file;
		uint32_t line;
	} names[] = {
		{"JS:*handle /srv/app.js:12:3", "handle", "/srv/app.js", 12},
		{"JS:^handle /srv/my app.js:12:3", "handle", "/srv/my app.js", 12},
		{"JS:~ file:///srv/a.mjs:1:2", "(anonymous)", "/srv/a.mjs", 1},
		{"LazyCompile:~emit node:events:465:44", "emit", "node:events", 465},
		{"JS:*get size /a.js:7:1", "get size", "/a.js", 7},
		{"JS:handle", "handle", NULL, 0},
		{"JS:", "(anonymous)", NULL, 0},
		{"Builtin:ArrayMap", "Builtins_ArrayMap", NULL, 0},
		{"Lorg/x/Server;::handle", "org.x.Server.handle", NULL, 0},
		{"Lorg/x/Server;handle(Lorg/x/Job;)V Server.java:47", "org.x.Server.handle",
		 "Server.java", 47},
		{"Lorg/x/Server;<init>()V", "org.x.Server.<init>", NULL, 0},
		{"handle(int, long) /srv/app.c:47", "handle(int, long)", "/srv/app.c", 47},
		{"Lx y;f():1", "Lx", "y;f()", 1},
		{"La x;::b:3", "La", "x;::b", 3},
		{" x:1", " x:1", NULL, 0},
		{"L; (x)", "L; (x)", NULL, 0},
		{"a thing: 47", "a thing: 47", NULL, 0},
		{"void org.x.Server.handle(int, long)", "org.x.Server.handle(int, long)", NULL, 0},
		{"java.lang.Object.<init>()", "java.lang.Object.<init>()", NULL, 0},
		{"StubRoutines (1)", "StubRoutines (1)", NULL, 0},
		{"Interpreter", "Interpreter", NULL, 0},
		{"", "", NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct code_name name;

		assert_int_equal(code_name_parse(&name, names[i].text), 0);
		assert_string_equal(name.function, names[i].function);
		assert_int_equal(name.line, names[i].line);
		assert_int_equal(!name.file, !names[i].file);
		if (name.file)
			assert_string_equal(name.file, names[i].file);
		free(name.function);
		free(name.file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_taken_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
