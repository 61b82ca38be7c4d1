/* test_report_live_processes.c - the blocks of many processes, and what an exec makes of them */
#include "tests/unit/report_live_world.h"

static void exec_ends_the_blocks_of_its_process_only(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	alloc(live, 2, 0x2000, 53);
	alloc(live, 3, 0x3000, 59);
	send(live, (struct mlk_event){
			   .kind = MLK_ALLOC, .tgid = 200, .tid = 9, .addr = 0x1000, .size = 61});
	other(live, MLK_RELEASE, 2, 0x2000); /* killed in the middle of it */
	other(live, MLK_EXEC, 1, 0);
	check_amount(live_totals(live)->gone, 3, 47 + 53 + 59);
	alloc(live, 100, 0x1000, 67);
	other(live, MLK_RESTORE, 2, 0x2000);
	check_amount(finish(live, 2, 0, 0)->outstanding, 2, 61 + 67);
	live_free(live);
}

struct told {
	uint64_t last; /* address */
	size_t nr;
};

static void note_gone(void *arg, const struct live_change *change)
{
	struct told *told = arg;

	if (change->sum != LIVE_GONE)
		return;
	assert_true(change->block->addr > told->last);
	told->last = change->block->addr;
	told->nr++;
}

static void an_exec_tells_of_its_blocks_by_their_addresses_if_asked_to(void **state)
{
	struct live *live = start();
	struct told told = {0};

	(void)state;
	live_watch(live, &(struct live_watch){note_gone, &told, .in_order = true});
	for (uint64_t i = 0; i < 1000; i++)
		alloc(live, 1, (i * 7919 % 1000 + 1) * 16, 1);
	other(live, MLK_EXEC, 1, 0);
	assert_int_equal(told.nr, 1000);
	check_amount(finish(live, 0, 0, 0)->gone, 1000, 1000);
	live_free(live);
}

/* Did each exec look at all blocks there are, this would take days. */
static void an_exec_costs_nothing_when_its_process_has_no_blocks(void **state)
{
	struct live *live = start();

	(void)state;
	for (uint64_t i = 0; i < 100000; i++)
		alloc(live, 1, i * 16, 1);
	for (uint32_t i = 0; i < 1000000; i++) {
		struct mlk_event event = {.tgid = 200 + i % 7, .tid = i, .addr = i, .size = 3};

		event.kind = MLK_ALLOC;
		send(live, event);
		event.kind = i % 2 ? MLK_RELEASE : MLK_EXEC;
		send(live, event);
		event.kind = MLK_EXEC;
		event.tid++; /* the exec kills the thread in its realloc */
		send(live, event);
	}
	check_amount(finish(live, 100000, 0, 0)->gone, 1000000, 3000000);
	live_free(live);
}

static void many_processes_have_their_own_blocks(void **state)
{
	struct live *live = start();

	(void)state;
	for (int round = 0; round < 2; round++)
		for (uint32_t tgid = 1; tgid <= 20000; tgid++) {
			struct mlk_event event = {.kind = round ? MLK_FREE : MLK_ALLOC,
						  .tgid = tgid,
						  .tid = tgid,
						  .addr = round ? 0x1000 * (tgid % 2) : 0x1000,
						  .size = 47};

			send(live, event);
		}
	finish(live, 10000, 10000, 10000);
	live_free(live);
}

#define KEPT 4

/* Child @tgid of TGID is forked, and allocates @blocks blocks. */
static void begin_child(struct live *live, uint32_t tgid, int blocks)
{
	send(live, (struct mlk_event){.kind = MLK_FORK, .tgid = tgid, .tid = tgid, .addr = TGID});
	for (int i = 1; i <= blocks; i++)
		send(live, (struct mlk_event){.kind = MLK_ALLOC,
					      .tgid = tgid,
					      .tid = tgid,
					      .addr = 0x1000 * (uint64_t)i,
					      .size = 47});
}

static void end_child(struct live *live, uint32_t tgid, uint64_t time_ns)
{
	send(live,
	     (struct mlk_event){.kind = MLK_EXIT, .tgid = tgid, .tid = tgid, .time_ns = time_ns});
}

/* Returns how many were forgotten; of each only one process may have had its number. */
static size_t forget_ended(struct live *live)
{
	struct live_ended *ended;
	size_t nr;

	assert_int_equal(live_forget_ended(live, KEPT, &ended, &nr), 0);
	for (size_t i = 1; i < nr; i++)
		assert_true(ended[i - 1].tgid <= ended[i].tgid);
	free(ended);
	return nr;
}

static void most_children_that_ended_are_forgotten(void **state)
{
	const uint32_t children = 100000;
	struct live *live = start();
	size_t forgotten = 0;

	(void)state;
	alloc(live, TGID, 0x1000, 53);
	for (uint32_t i = 0; i < children; i++) {
		begin_child(live, 1000 + i % 30000, 3);
		end_child(live, 1000 + i % 30000, i + 1);
		forgotten += forget_ended(live);
		assert_true(live_nr_processes(live) <= 1 + 2 * KEPT);
	}
	assert_int_equal(live_nr_begun(live), children + 1);
	assert_in_range(children - forgotten, KEPT, 2 * KEPT - 1);
	check_amount(live_totals(live)->gone, 3 * forgotten, 3 * 47 * forgotten);
	finish(live, 1 + 3 * (children - forgotten), 0, 0);
	live_free(live);
}

/* Those with the number of a process that was forgotten, too. */
static void who_goes_on_keeps_its_blocks_when_others_are_forgotten(void **state)
{
	struct live *live = start();
	uint32_t number;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		begin_child(live, 200, 2);
		begin_child(live, 300 + i, 1);
		forget_ended(live);
		/* both are its own, not those of the one before */
		send(live,
		     (struct mlk_event){.kind = MLK_FREE, .tgid = 200, .tid = 200, .addr = 0x2000});
		end_child(live, 300 + i, 2 * i + 1);
		forget_ended(live);
		assert_int_equal(live_process_number(live, 200, &number), 0);
		assert_int_equal(live_process(live, number).tgid, 200);
		check_amount(live_process(live, number).totals.outstanding, 1, 47);
		check_amount(live_process(live, number).totals.freed, 1, 47);
		end_child(live, 200, 2 * i + 2);
	}
	check_sums(live);
	assert_int_equal(live_totals(live)->freed.blocks, 1000);
	live_free(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exec_ends_the_blocks_of_its_process_only),
		cmocka_unit_test(an_exec_tells_of_its_blocks_by_their_addresses_if_asked_to),
		cmocka_unit_test(an_exec_costs_nothing_when_its_process_has_no_blocks),
		cmocka_unit_test(many_processes_have_their_own_blocks),
		cmocka_unit_test(most_children_that_ended_are_forgotten),
		cmocka_unit_test(who_goes_on_keeps_its_blocks_when_others_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
