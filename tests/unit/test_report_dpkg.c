/* test_report_dpkg.c - whose file it is, by lists of packages that the test writes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "report/name/dpkg.h"

static const struct {
	const char *file, *text;
} lists[] = {
	{"libone2.0:amd64.list", "/.\n/usr\n/usr/lib\n/usr/lib/libone.so.2\n"},
	{"two.list", "/.\n/lib\n/lib/libtwo.so\n/usr/lib/libone.so\n/usr/lib/libone.so.22"},
	{"three.list.old", "/usr/lib/libthree.so\n"},
	{"three.md5sums", "/usr/lib/libthree.so\n"},
	{"zwei.list", "/usr/bin/both\n"},
	{"deux.list", "/usr/bin/both\n"},
	{"empty.list", ""},
};

#define LISTS (sizeof(lists) / sizeof(*lists))

static char folder[] = "/tmp/mleak-dpkg-XXXXXX";

static void list_path(char *buf, size_t room, size_t i)
{
	snprintf(buf, room, "%s/%s", folder, lists[i].file);
}

static int write_lists(void **state)
{
	char path[128];

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < LISTS; i++) {
		FILE *out;

		list_path(path, sizeof(path), i);
		out = fopen(path, "w");
		assert_non_null(out);
		fputs(lists[i].text, out);
		assert_int_equal(fclose(out), 0);
	}
	return 0;
}

static int remove_lists(void **state)
{
	char path[128];

	(void)state;
	for (size_t i = 0; i < LISTS; i++) {
		list_path(path, sizeof(path), i);
		assert_int_equal(unlink(path), 0);
	}
	return rmdir(folder);
}

static void each_file_is_of_the_package_whose_list_has_it(void **state)
{
	static const char *const paths[] = {
		"/usr/lib/libone.so.2", "/usr/lib/libtwo.so",	"/usr/lib/libone.so.22",
		"/usr/lib/libthree.so", "/usr/lib/libone.so.2", "/usr/bin/both",
		"/usr/lib/libone",
	};
	static const char *const packages[] = {"libone2.0", "two",  "two", NULL,
					       "libone2.0", "deux", NULL};
	char *names[7];
	struct dpkg *asked;

	(void)state;
	assert_int_equal(dpkg_ask(&asked, folder, paths, 7), 0);
	assert_int_equal(dpkg_read(asked, names), 0);
	for (size_t i = 0; i < 7; i++) {
		if (packages[i])
			assert_string_equal(names[i], packages[i]);
		else
			assert_null(names[i]);
		free(names[i]);
	}
}

static void nothing_is_found_where_there_is_no_dpkg(void **state)
{
	static const char *const paths[] = {"/usr/bin/both"};
	struct dpkg *asked;
	char *name;

	(void)state;
	assert_int_equal(dpkg_ask(&asked, "/nowhere/at/all", paths, 1), 0);
	assert_int_equal(dpkg_read(asked, &name), 0);
	assert_null(name);
	assert_int_equal(dpkg_ask(&asked, folder, NULL, 0), 0);
	assert_int_equal(dpkg_read(asked, &name), 0);
}

static void an_answer_may_be_left(void **state)
{
	static const char *const paths[] = {"/usr/bin/both"};
	struct dpkg *asked;

	(void)state;
	assert_int_equal(dpkg_ask(&asked, folder, paths, 1), 0);
	assert_int_equal(dpkg_read(asked, NULL), 0);
	assert_int_equal(dpkg_read(NULL, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_file_is_of_the_package_whose_list_has_it),
		cmocka_unit_test(nothing_is_found_where_there_is_no_dpkg),
		cmocka_unit_test(an_answer_may_be_left),
	};

	return cmocka_run_group_tests(tests, write_lists, remove_lists);
}
