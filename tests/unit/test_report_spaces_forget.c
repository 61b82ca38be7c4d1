/* test_report_spaces_forget.c - layouts that are of no use any more, while a trace is followed */
#include "tests/unit/report_spaces_world.h"

/* As a child that is executed again and again has them. */
static void replaced_layouts_are_forgotten(void **state)
{
	struct fixture f = start();
	size_t taken;

	(void)state;
	f.spaces->grows = true;
	snapshot(&f, 2, 5, 0x10000);
	snapshot(&f, 1, 10, 0x10000);
	assert_int_equal(address_spaces_prepare(f.spaces, f.images, f.dw), 0);
	taken = f.spaces->nr_mappings;
	for (uint64_t i = 1; i <= 1000; i++) {
		snapshot(&f, 1, 10 + 10 * i, 0x10000 * (i + 1));
		assert_int_equal(address_spaces_prepare(f.spaces, f.images, f.dw), 0);
		assert_ptr_not_equal(find(&f, 1, 10 * i), find(&f, 1, 10 + 10 * i));
		address_spaces_forget_replaced(f.spaces, 10 * i);
		assert_int_equal(f.spaces->nr, i < 2 ? 2 : 3);
		assert_int_equal(f.spaces->nr_snapshots, 3);
	}
	/* what is left is still found, and by its mappings */
	assert_ptr_not_equal(find(&f, 1, 10009), find(&f, 1, 10010));
	snapshot(&f, 3, 7, 0x10000 * 1000);
	assert_int_equal(address_spaces_prepare(f.spaces, f.images, f.dw), 0);
	assert_ptr_equal(find(&f, 3, 7), find(&f, 1, 10009));
	assert_int_equal(f.spaces->nr, 3);
	/* all room that they took is given back */
	address_spaces_forget_replaced(f.spaces, UINT64_MAX);
	assert_int_equal(f.spaces->nr, 3);
	assert_int_equal(f.spaces->nr_mappings, taken + 5);
	assert_int_equal(find(&f, 2, 5)->nr_maps, 2);
	finish(&f);
}

static bool is_of_one(void *arg, uint32_t tgid, uint64_t time_ns)
{
	(void)arg;
	(void)time_ns;
	return tgid == 1;
}

static void layouts_of_forgotten_processes_are_released(void **state)
{
	struct fixture f = start();

	(void)state;
	f.spaces->grows = true;
	snapshot(&f, 1, 1, 0x10000);
	snapshot(&f, 1, 2, 0x20000);
	snapshot(&f, 2, 3, 0x20000);
	assert_int_equal(address_spaces_prepare(f.spaces, f.images, f.dw), 0);
	find(&f, 1, 1);
	address_spaces_forget(f.spaces, is_of_one, NULL);
	assert_int_equal(f.spaces->nr, 1);
	assert_false(address_spaces_knows(f.spaces, 1));
	assert_int_equal(find(&f, 2, 3)->maps[0].start, 0x20000);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaced_layouts_are_forgotten),
		cmocka_unit_test(layouts_of_forgotten_processes_are_released),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
