/* test_report_processes.c - several processes in one trace: fork, exec, exit, and sums of each */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/live/live.h"
#include "report/stats/processes.h"
#include "report/stats/stacks.h"

#define PARENT 100
#define CHILD  200

static void send(struct live *live, uint32_t tgid, enum mlk_kind kind, uint64_t addr, uint64_t size)
{
	struct mlk_event event = {
		.kind = (uint8_t)kind, .tgid = tgid, .tid = tgid, .addr = addr, .size = size};

	assert_int_equal(live_event(live, &event, 0), 0);
}

static struct live *start(void)
{
	struct live *live;

	assert_int_equal(live_new(&live), 0);
	return live;
}

static void add(struct live_amount *to, struct live_amount what)
{
	to->blocks += what.blocks;
	to->bytes += what.bytes;
}

/* The sums of all processes are those of the trace. */
static void check_sums(const struct live *live)
{
	struct live_totals sum = {0};

	for (size_t i = 0; i < live_nr_processes(live); i++) {
		struct live_totals t = live_process(live, i).totals;

		add(&sum.allocated, t.allocated);
		add(&sum.freed, t.freed);
		add(&sum.outstanding, t.outstanding);
		add(&sum.implied, t.implied);
		add(&sum.gone, t.gone);
		add(&sum.reserved, t.reserved);
		add(&sum.given_back, t.given_back);
		sum.unknown_frees += t.unknown_frees;
		live_amount_add(&sum.older, t.older);
		sum.inherited_frees += t.inherited_frees;
		assert_int_equal(t.allocated.blocks, t.freed.blocks + t.outstanding.blocks +
							     t.implied.blocks + t.gone.blocks);
	}
	assert_memory_equal(&sum, live_totals(live), sizeof(sum));
}

static struct live *with_child(void)
{
	struct live *live = start();

	send(live, PARENT, MLK_ALLOC, 0x1000, 47);
	send(live, PARENT, MLK_ALLOC, 0x2000, 53);
	send(live, CHILD, MLK_FORK, PARENT, 0);
	return live;
}

static void a_child_of_fork_begins_without_allocations(void **state)
{
	struct live *live = with_child();

	(void)state;
	live_finish(live);
	assert_int_equal(live_nr_processes(live), 2);
	assert_int_equal(live_process(live, 1).tgid, CHILD);
	assert_int_equal(live_process(live, 1).parent, PARENT);
	assert_int_equal(live_process(live, 1).totals.allocated.blocks, 0);
	assert_int_equal(live_process(live, 0).totals.outstanding.bytes, 100);
	check_sums(live);
	live_free(live);
}

static void what_a_child_frees_of_its_parent_s_is_inherited(void **state)
{
	struct live *live = with_child();
	struct live_process child;

	(void)state;
	send(live, CHILD, MLK_FREE, 0x1000, 0);
	send(live, CHILD, MLK_ALLOC, 0x1000, 59); /* at the place of an inherited one */
	send(live, CHILD, MLK_FREE, 0x1000, 0);
	send(live, CHILD, MLK_RELEASE, 0x2000, 0); /* realloc of an inherited one */
	send(live, CHILD, MLK_ALLOC, 0x3000, 61);
	live_finish(live);
	child = live_process(live, 1);
	assert_int_equal(child.totals.inherited_frees, 2);
	assert_int_equal(child.totals.unknown_frees, 0);
	assert_int_equal(child.totals.implied.blocks, 0);
	assert_int_equal(child.totals.freed.bytes, 59);
	assert_int_equal(child.totals.outstanding.bytes, 61);
	assert_int_equal(live_process(live, 0).totals.outstanding.blocks, 2);
	check_sums(live);
	live_free(live);
}

static void after_an_exec_nothing_is_inherited(void **state)
{
	struct live *live = with_child();

	(void)state;
	send(live, CHILD, MLK_EXEC, 0, 0);
	send(live, CHILD, MLK_FREE, 0x1000, 0);
	live_finish(live);
	assert_int_equal(live_totals(live)->inherited_frees, 0);
	assert_int_equal(live_totals(live)->unknown_frees, 1);
	check_sums(live);
	live_free(live);
}

static void a_release_at_a_process_s_exit_is_a_free(void **state)
{
	struct live *live = with_child();

	(void)state;
	send(live, CHILD, MLK_ALLOC, 0x1000, 59);
	send(live, CHILD, MLK_RELEASE, 0x1000, 0);
	send(live, CHILD, MLK_EXIT, 0, 0);
	live_finish(live);
	assert_int_equal(live_process(live, 1).totals.freed.bytes, 59);
	assert_true(live_process(live, 1).exited);
	assert_false(live_process(live, 0).exited);
	check_sums(live);
	live_free(live);
}

/* With and without a notice of the first one's end. */
static void a_number_that_comes_again_is_another_process(void **state)
{
	(void)state;
	for (int told = 0; told < 2; told++) {
		struct live *live = with_child();
		struct live_totals totals;

		send(live, CHILD, MLK_ALLOC, 0x1000, 59);
		if (told)
			send(live, CHILD, MLK_EXIT, 0, 0);
		send(live, CHILD, MLK_FORK, PARENT, 0);
		send(live, CHILD, MLK_ALLOC, 0x1000, 61);
		live_finish(live);
		assert_int_equal(live_nr_processes(live), 3);
		assert_int_equal(live_totals(live)->implied.blocks, 0);
		assert_int_equal(live_process(live, 1).totals.outstanding.bytes, 59);
		assert_int_equal(live_process(live, 2).totals.outstanding.bytes, 61);
		check_sums(live);
		assert_true(processes_totals(live, CHILD, &totals));
		assert_int_equal(totals.outstanding.bytes, 120);
		assert_false(processes_totals(live, 300, &totals));
		live_free(live);
	}
}

static void all_that_a_process_had_may_be_mapped(void **state)
{
	struct live *live = start();
	struct mlk_event map = {.kind = MLK_ALLOC,
				.func = MLK_FUNC_MMAP,
				.tgid = CHILD,
				.tid = CHILD,
				.addr = 0x10000,
				.size = 4096};

	(void)state;
	assert_int_equal(live_event(live, &map, 0), 0);
	send(live, CHILD, MLK_FORK, PARENT, 0);
	assert_int_equal(live_event(live, &map, 0), 0);
	live_finish(live);
	assert_int_equal(live_nr_processes(live), 2);
	assert_int_equal(live_totals(live)->implied.blocks, 0);
	check_sums(live);
	live_free(live);
}

static void the_sums_of_processes_add_up_whatever_comes(void **state)
{
	struct live *live = start();
	unsigned int seed = 7;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		static const enum mlk_kind kinds[] = {MLK_ALLOC, MLK_ALLOC,   MLK_FREE,
						      MLK_FREE,	 MLK_RELEASE, MLK_RESTORE,
						      MLK_UNMAP, MLK_PAGES};
		uint32_t tgid = PARENT + (uint32_t)(rand_r(&seed) % 5);
		struct mlk_event event = {.kind = (uint8_t)kinds[rand_r(&seed) % 8],
					  .tgid = tgid,
					  .tid = tgid + (uint32_t)(rand_r(&seed) % 2),
					  .addr = 0x1000u * (uint32_t)(rand_r(&seed) % 40 + 1),
					  .size = (uint32_t)(rand_r(&seed) % 9999) + 1,
					  .func = rand_r(&seed) % 4 ? MLK_FUNC_MALLOC
								    : MLK_FUNC_MMAP};

		if (event.kind == MLK_PAGES)
			event.func = (uint8_t)(rand_r(&seed) % MLK_PAGES_NR);
		else if (rand_r(&seed) % 2)
			event.flags = MLK_EVENT_RESERVED; /* which only a mapping can be */
		if (rand_r(&seed) % 1000 == 0)
			event.kind = (uint8_t)(rand_r(&seed) % 2 ? MLK_EXIT : MLK_EXEC);
		else if (rand_r(&seed) % 1000 == 0)
			event.kind = MLK_FORK;
		assert_int_equal(live_event(live, &event, 0), 0);
	}
	live_finish(live);
	assert_true(live_nr_processes(live) > 20);
	check_sums(live);
	live_free(live);
}

static void a_stack_of_two_processes_is_two_stacks(void **state)
{
	struct dwunw_frame frame = {.pc = 0x1000, .addr = 0x1000, .module = DWUNW_NO_MODULE};
	uint32_t id, number[3];
	struct stacks *stacks;
	struct dwunw *dw;

	(void)state;
	assert_int_equal(dwunw_new(&dw), 0);
	assert_int_equal(stacks_new(&stacks, dw), 0);
	assert_int_equal(dwunw_stack_intern(dw, &frame, 1, DWUNW_STATUS_ENDED, &id), 0);
	for (int round = 0; round < 3; round++)
		for (uint32_t process = 0; process < 3; process++) {
			uint32_t again;

			assert_int_equal(stacks_add(stacks, id, process, &again), 0);
			if (!round)
				number[process] = again;
			assert_int_equal(again, number[process]);
			assert_int_equal(stacks->all[again].process, process);
		}
	assert_int_equal(stacks->nr, 3);
	stacks_free(stacks);
	dwunw_free(dw);
}

static void a_process_has_the_last_name_of_its_main_thread(void **state)
{
	const struct mlk_thread threads[] = {{CHILD, CHILD, "sh"},
					     {CHILD, CHILD + 1, "worker"},
					     {CHILD, CHILD, ""},
					     {CHILD, CHILD, "ls"}};
	struct thread_names *processes;
	char *label;

	(void)state;
	assert_int_equal(thread_names_new(&processes), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(processes_note(processes, &threads[i]), 0);
	label = processes_label(processes, CHILD);
	assert_string_equal(label, "ls (200)");
	free(label);
	label = processes_label(processes, PARENT);
	assert_string_equal(label, "process (100)");
	free(label);
	thread_names_free(processes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_of_fork_begins_without_allocations),
		cmocka_unit_test(what_a_child_frees_of_its_parent_s_is_inherited),
		cmocka_unit_test(after_an_exec_nothing_is_inherited),
		cmocka_unit_test(a_release_at_a_process_s_exit_is_a_free),
		cmocka_unit_test(a_number_that_comes_again_is_another_process),
		cmocka_unit_test(all_that_a_process_had_may_be_mapped),
		cmocka_unit_test(the_sums_of_processes_add_up_whatever_comes),
		cmocka_unit_test(a_stack_of_two_processes_is_two_stacks),
		cmocka_unit_test(a_process_has_the_last_name_of_its_main_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
