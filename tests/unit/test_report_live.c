/* test_report_live.c - the rules that match allocations with frees */
#include "tests/unit/report_live_world.h"

static void a_freed_block_is_not_outstanding(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	alloc(live, 1, 0x2000, 53);
	other(live, MLK_FREE, 2, 0x1000);
	check_amount(finish(live, 1, 1, 0)->outstanding, 1, 53);
	check_amount(live_totals(live)->freed, 1, 47);
	live_free(live);
}

static void copy_block(void *arg, const struct live_block *block)
{
	*(struct live_block *)arg = *block;
}

static void a_block_keeps_who_got_it_and_when(void **state)
{
	struct mlk_event event = {
		.kind = MLK_ALLOC, .tid = 7, .addr = 0x1000, .time_ns = 99, .alloc_id = 5};
	struct live *live = start();
	struct live_block block = {0};

	(void)state;
	send(live, event);
	check_amount(live_totals(live)->outstanding, 1, 0);
	live_each(live, copy_block, &block);
	assert_int_equal(block.addr, 0x1000);
	assert_int_equal(block.tgid, TGID);
	assert_int_equal(block.tid, 7);
	assert_int_equal(block.time_ns, 99);
	assert_int_equal(block.stack, 5);
	live_free(live);
}

static void a_reused_address_is_another_block(void **state)
{
	struct live *live = start();

	(void)state;
	for (uint64_t size = 1; size <= 5; size++) {
		alloc(live, 1, 0x1000, size);
		if (size < 5)
			other(live, MLK_FREE, 1, 0x1000);
	}
	check_amount(finish(live, 1, 4, 0)->outstanding, 1, 5);
	live_free(live);
}

static void an_allocation_at_a_live_address_implies_a_free(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	alloc(live, 2, 0x1000, 53);
	check_amount(finish(live, 1, 0, 0)->implied, 1, 47);
	check_amount(live_totals(live)->outstanding, 1, 53);
	live_free(live);
}

static void processes_do_not_share_addresses(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	send(live, (struct mlk_event){.kind = MLK_FREE, .tgid = 200, .tid = 2, .addr = 0x1000});
	finish(live, 1, 0, 1);
	live_free(live);
}

static void frees_of_unknown_blocks_are_counted_but_not_nested_ones(void **state)
{
	struct live *live = start();

	(void)state;
	other(live, MLK_FREE, 1, 0x1000);
	nested_free(live, 1, 0x1000);
	alloc(live, 1, 0x1000, 47);
	nested_free(live, 1, 0x1000);
	finish(live, 0, 1, 1);
	live_free(live);
}

static void a_successful_realloc_is_a_free_and_an_allocation(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	alloc(live, 1, 0x1000, 94); /* in place */
	other(live, MLK_RELEASE, 1, 0x1000);
	alloc(live, 1, 0x2000, 200); /* moved */
	check_amount(finish(live, 1, 2, 0)->freed, 2, 47 + 94);
	check_amount(live_totals(live)->allocated, 3, 47 + 94 + 200);
	check_amount(live_totals(live)->implied, 0, 0);
	live_free(live);
}

static void a_nested_free_of_the_released_block_counts_once(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	nested_free(live, 1, 0x1000);
	alloc(live, 1, 0x2000, 94);
	finish(live, 1, 1, 0);
	live_free(live);
}

static void a_nested_free_of_another_block_does_not_end_the_realloc(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	alloc(live, 1, 0x2000, 53);
	other(live, MLK_RELEASE, 1, 0x1000);
	nested_free(live, 1, 0x2000);
	other(live, MLK_RESTORE, 1, 0x1000);
	check_amount(finish(live, 1, 1, 0)->outstanding, 1, 47);
	live_free(live);
}

static void another_thread_may_reuse_a_released_address_at_once(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	alloc(live, 2, 0x1000, 53);
	alloc(live, 1, 0x2000, 94);
	check_amount(finish(live, 2, 1, 0)->outstanding, 2, 53 + 94);
	check_amount(live_totals(live)->implied, 0, 0);
	live_free(live);
}

static void a_failed_realloc_frees_nothing(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	alloc(live, 2, 0x2000, 53); /* another thread's event decides nothing */
	other(live, MLK_RESTORE, 1, 0x1000);
	check_amount(finish(live, 2, 0, 0)->allocated, 2, 47 + 53);
	live_free(live);
}

static void a_restore_after_another_event_of_the_thread_does_nothing(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	other(live, MLK_FREE, 1, 0x5000);
	other(live, MLK_RESTORE, 1, 0x1000);
	finish(live, 0, 1, 1);
	live_free(live);
}

static void a_restore_of_another_address_makes_the_release_final(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	other(live, MLK_RESTORE, 1, 0x2000);
	other(live, MLK_RESTORE, 1, 0x1000);
	finish(live, 0, 1, 0);
	live_free(live);
}

static void a_restore_at_an_address_given_out_again_is_an_implied_free(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	alloc(live, 2, 0x1000, 53);
	other(live, MLK_RESTORE, 1, 0x1000);
	check_amount(finish(live, 1, 0, 0)->implied, 1, 47);
	check_amount(live_totals(live)->outstanding, 1, 53);
	live_free(live);
}

static void an_unknown_release_counts_only_when_final(void **state)
{
	struct live *live = start();

	(void)state;
	other(live, MLK_RELEASE, 1, 0x1000);
	other(live, MLK_RESTORE, 1, 0x1000);
	assert_int_equal(live_totals(live)->unknown_frees, 0);
	other(live, MLK_RELEASE, 1, 0x1000);
	alloc(live, 1, 0x1000, 47);
	finish(live, 1, 0, 1);
	live_free(live);
}

static void an_older_block_has_the_size_that_its_address_has_next(void **state)
{
	struct live *live = start();
	struct live_amount net;

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		other(live, MLK_FREE, 1, 0x1000 + i * 64);
	alloc(live, 1, 0x1040, 53);
	alloc(live, 2, 0x1000, 47);
	alloc(live, 2, 0x2000, 31);
	other(live, MLK_FREE, 2, 0x1000);
	alloc(live, 2, 0x1000, 11);
	check_amount(finish(live, 3, 1, 3)->older, 2, 100);
	net = live_net(live_totals(live));
	assert_int_equal((int64_t)net.blocks, 0);
	assert_int_equal((int64_t)net.bytes, 53 + 31 + 11 - 100);
	live_free(live);
}

/* As when a thread ends, and glibc empties its cache. */
static void a_block_that_is_freed_again_is_no_older_one(void **state)
{
	struct live *live = start();

	(void)state;
	live_expect_older(live);
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_FREE, 1, 0x1000);
	other(live, MLK_FREE, 1, 0x2000); /* an older one */
	other(live, MLK_FREE, 1, 0x1000);
	other(live, MLK_FREE, 1, 0x2000);
	alloc(live, 2, 0x1000, 53); /* by another thread */
	alloc(live, 2, 0x2000, 31);
	check_amount(finish(live, 2, 1, 1)->older, 1, 31);
	assert_int_equal(live_totals(live)->freed_again, 2);
	live_free(live);
}

static void many_blocks_are_freed_again(void **state)
{
	const uint64_t nr = 200003;
	struct live *live = start();

	(void)state;
	live_expect_older(live);
	for (uint64_t i = 0; i < nr; i++)
		alloc(live, 1, 0x1000 + 32 * i, 24);
	for (int round = 0; round < 2; round++)
		for (uint64_t i = 0; i < nr; i++)
			other(live, MLK_FREE, 1, 0x1000 + 32 * i);
	finish(live, 0, nr, 0);
	assert_int_equal(live_totals(live)->freed_again, nr);
	live_free(live);
}

static void the_size_of_an_older_block_that_realloc_changes_is_not_known(void **state)
{
	struct live *live = start();

	(void)state;
	other(live, MLK_RELEASE, 1, 0x1000);
	alloc(live, 1, 0x1000, 470);
	other(live, MLK_RELEASE, 1, 0x3000);
	alloc(live, 1, 0x4000, 47);
	check_amount(live_totals(live)->older, 0, 0);
	alloc(live, 1, 0x3000, 31);
	check_amount(finish(live, 3, 0, 2)->older, 1, 31);
	live_free(live);
}

static void a_release_at_the_end_of_the_trace_is_a_free(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	assert_int_equal(live_totals(live)->freed.blocks, 0);
	finish(live, 0, 1, 0);
	live_free(live);
}

static void unknown_kinds_are_ignored(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_KIND_NR, 1, 0x1000);
	other(live, 0, 1, 0x1000);
	finish(live, 1, 0, 0);
	live_free(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_freed_block_is_not_outstanding),
		cmocka_unit_test(a_block_keeps_who_got_it_and_when),
		cmocka_unit_test(a_reused_address_is_another_block),
		cmocka_unit_test(an_allocation_at_a_live_address_implies_a_free),
		cmocka_unit_test(processes_do_not_share_addresses),
		cmocka_unit_test(frees_of_unknown_blocks_are_counted_but_not_nested_ones),
		cmocka_unit_test(a_successful_realloc_is_a_free_and_an_allocation),
		cmocka_unit_test(a_nested_free_of_the_released_block_counts_once),
		cmocka_unit_test(a_nested_free_of_another_block_does_not_end_the_realloc),
		cmocka_unit_test(another_thread_may_reuse_a_released_address_at_once),
		cmocka_unit_test(a_failed_realloc_frees_nothing),
		cmocka_unit_test(a_restore_after_another_event_of_the_thread_does_nothing),
		cmocka_unit_test(a_restore_of_another_address_makes_the_release_final),
		cmocka_unit_test(a_restore_at_an_address_given_out_again_is_an_implied_free),
		cmocka_unit_test(an_unknown_release_counts_only_when_final),
		cmocka_unit_test(an_older_block_has_the_size_that_its_address_has_next),
		cmocka_unit_test(a_block_that_is_freed_again_is_no_older_one),
		cmocka_unit_test(many_blocks_are_freed_again),
		cmocka_unit_test(the_size_of_an_older_block_that_realloc_changes_is_not_known),
		cmocka_unit_test(a_release_at_the_end_of_the_trace_is_a_free),
		cmocka_unit_test(unknown_kinds_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
