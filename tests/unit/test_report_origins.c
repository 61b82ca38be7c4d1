/* test_report_origins.c - origins of the kernel's blocks, as a report keeps them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/trace/origins.h"

#define MANY 3000

static void note(struct origins *all, uint32_t number, const char *process)
{
	char copy[32];
	const struct mlk_origin origin = {.number = number,
					  .tgid = number + 1,
					  .process = copy,
					  .cgroup = "/a.slice",
					  .cache = "dentry",
					  .flags = "GFP_KERNEL",
					  .order = number % 64};

	snprintf(copy, sizeof(copy), "%s", process);
	assert_int_equal(origins_note(all, &origin), 0);
	memset(copy, 'x', sizeof(copy) - 1); /* what was noted is a copy */
}

static void each_is_found_by_its_number(void **state)
{
	struct origins all = {0};

	(void)state;
	for (uint32_t i = MANY; i > 0; i--)
		note(&all, i * 7, "server");
	for (uint32_t i = 0; i <= MANY * 7; i++) {
		const struct origin *found = origins_get(&all, i);

		if (!i || i % 7) {
			assert_null(found);
			continue;
		}
		assert_non_null(found);
		assert_int_equal(found->number, i);
		assert_int_equal(found->tgid, i + 1);
		assert_int_equal(found->order, i % 64);
		assert_string_equal(found->process, "server");
		assert_string_equal(found->cgroup, "/a.slice");
		assert_string_equal(found->cache, "dentry");
		assert_string_equal(found->flags, "GFP_KERNEL");
	}
	origins_release(&all);
}

static void the_first_of_a_number_counts(void **state)
{
	struct origins all = {0};

	(void)state;
	note(&all, 3, "first");
	note(&all, 3, "second");
	note(&all, UINT32_MAX, "last");
	assert_string_equal(origins_get(&all, 3)->process, "first");
	assert_string_equal(origins_get(&all, UINT32_MAX)->process, "last");
	assert_int_equal(all.nr, 2);
	origins_release(&all);
}

static void of_none_nothing_is_known(void **state)
{
	struct origins all = {0};

	(void)state;
	assert_null(origins_get(&all, 0));
	assert_null(origins_get(&all, 1));
	origins_release(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_found_by_its_number),
		cmocka_unit_test(the_first_of_a_number_counts),
		cmocka_unit_test(of_none_nothing_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
