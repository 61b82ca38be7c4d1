/* test_report_live_mappings.c - the rules that match mappings with what unmaps or moves them */
#include "tests/unit/report_live_world.h"

static void map(struct live *live, uint32_t tid, uint64_t addr, uint64_t size)
{
	send(live, (struct mlk_event){.kind = MLK_ALLOC,
				      .func = MLK_FUNC_MMAP,
				      .tid = tid,
				      .addr = addr,
				      .size = size});
}

static void unmap(struct live *live, uint32_t tid, uint64_t addr, uint64_t size)
{
	send(live, (struct mlk_event){.kind = MLK_UNMAP, .tid = tid, .addr = addr, .size = size});
}

static void an_unmapping_cuts_what_it_covers_out_of_mappings(void **state)
{
	struct live *live = start();

	(void)state;
	map(live, 1, 0x10000, 0x5000);
	alloc(live, 1, 0x12000, 47);	/* a block that malloc gave out is none of its business */
	unmap(live, 1, 0x11000, 0xfff); /* rounded up to a page */
	check_amount(live_totals(live)->outstanding, 3, 0x4000 + 47);
	unmap(live, 1, 0x14000, 0x100000);
	check_amount(live_totals(live)->outstanding, 3, 0x3000 + 47);
	unmap(live, 2, 0, 0x11000);
	check_amount(live_totals(live)->outstanding, 2, 0x2000 + 47);
	unmap(live, 2, 0x12000, 0x2000);
	check_amount(finish(live, 1, 2, 0)->outstanding, 1, 47);
	check_amount(live_totals(live)->freed, 2, 0x5000);
	live_free(live);
}

static void a_mapping_that_could_not_be_moved_is_restored(void **state)
{
	struct live *live = start();

	(void)state;
	map(live, 1, 0x10000, 0x3000);
	unmap(live, 1, 0x10000, 0x3000);
	map(live, 2, 0x50000, 0x1000);
	other(live, MLK_RESTORE, 1, 0x10000);
	check_amount(live_totals(live)->outstanding, 2, 0x4000);
	unmap(live, 1, 0x11000, 0x1000); /* of its middle only */
	other(live, MLK_RESTORE, 1, 0x11000);
	finish(live, 4, 0, 0);
	check_amount(live_totals(live)->outstanding, 4, 0x4000);
	live_free(live);
}

static void all_mappings_of_an_mremap_that_failed_stay(void **state)
{
	struct live *live = start();

	(void)state;
	map(live, 1, 0x10000, 0x1000);
	map(live, 1, 0x11000, 0x2000);
	map(live, 1, 0x13000, 0x4000);
	unmap(live, 1, 0x10800, 0x3800); /* of the last only a part */
	map(live, 2, 0x50000, 0x1000);
	unmap(live, 2, 0x50000, 0x1000); /* another thread's is its own */
	other(live, MLK_RESTORE, 1, 0x10800);
	check_amount(live_totals(live)->outstanding, 5, 0x7000);
	check_amount(live_totals(live)->freed, 0, 0);
	live_free(live);
}

static void an_unmapping_is_not_undone_by_an_mremap_that_unmapped_nothing(void **state)
{
	struct live *live = start();

	(void)state;
	map(live, 1, 0x10000, 0x2000);
	map(live, 1, 0x20000, 0x1000);
	unmap(live, 1, 0x10000, 0x2000);
	other(live, MLK_RESTORE, 1, 0x20000); /* MREMAP_DONTUNMAP failed */
	other(live, MLK_RESTORE, 1, 0x10000);
	check_amount(finish(live, 1, 1, 0)->outstanding, 1, 0x1000);
	live_free(live);
}

static void a_mapping_over_others_implies_their_end(void **state)
{
	struct live *live = start();

	(void)state;
	map(live, 1, 0x10000, 0x2000);
	map(live, 1, 0x12000, 0x2000);
	map(live, 2, 0x11000, 0x2000);
	check_amount(live_totals(live)->implied, 0, 0x2000);
	check_amount(live_totals(live)->outstanding, 3, 0x4000);
	map(live, 2, 0, 0x100000);
	check_amount(finish(live, 1, 0, 0)->implied, 3, 0x6000);
	live_free(live);
}

static void mappings_at_the_end_of_memory_do_no_harm(void **state)
{
	struct live *live = start();

	(void)state;
	map(live, 1, UINT64_MAX, 5);
	map(live, 1, UINT64_MAX - 1, UINT64_MAX);
	map(live, 1, 0, UINT64_MAX);
	map(live, 1, 0x1000, 0);
	unmap(live, 1, 0x1000, UINT64_MAX);
	unmap(live, 1, UINT64_MAX, 1);
	other(live, MLK_EXEC, 1, 0);
	check_amount(live_totals(live)->outstanding, 0, 0);
	live_free(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unmapping_cuts_what_it_covers_out_of_mappings),
		cmocka_unit_test(a_mapping_that_could_not_be_moved_is_restored),
		cmocka_unit_test(all_mappings_of_an_mremap_that_failed_stay),
		cmocka_unit_test(an_unmapping_is_not_undone_by_an_mremap_that_unmapped_nothing),
		cmocka_unit_test(a_mapping_over_others_implies_their_end),
		cmocka_unit_test(mappings_at_the_end_of_memory_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
