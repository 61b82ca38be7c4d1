/* test_report_holders.c - who held an address, who holds it, and whose blocks were overrun */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/live/address_history.h"
#include "report/live/live_around.h"
#include "report/replay/overruns.h"

#define TGID 100
#define ADDR 0x10020ull

struct world {
	struct live *live;
	struct address_history *holders;
	uint64_t now_ns;
};

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_int_equal(live_new(&w->live), 0);
	assert_int_equal(address_history_new(&w->holders, ADDR), 0);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	live_free(w->live);
	address_history_free(w->holders);
	free(w);
	return 0;
}

/* The next event, of thread @tid; its stack is number @w->now_ns. */
static void send(struct world *w, struct mlk_event event)
{
	event.time_ns = ++w->now_ns;
	if (!event.tgid)
		event.tgid = TGID;
	assert_int_equal(live_event(w->live, &event, (uint32_t)w->now_ns), 0);
	assert_int_equal(address_history_event(w->holders, w->live, &event, (uint32_t)w->now_ns),
			 0);
}

static void give(struct world *w, uint64_t addr, uint64_t size)
{
	send(w, (struct mlk_event){.kind = MLK_ALLOC, .tid = 1, .addr = addr, .size = size});
}

static void take(struct world *w, enum mlk_kind kind, uint32_t tid, uint64_t addr)
{
	send(w, (struct mlk_event){.kind = kind, .tid = tid, .addr = addr, .size = 4096});
}

static void check_end(const struct world *w, enum holder_end end, uint32_t tid)
{
	struct holder h = address_history_get(w->holders, 0);

	assert_true(h.any);
	assert_int_equal(h.end, end);
	if (end != HOLDER_LIVES)
		assert_int_equal(h.end_tid, tid);
}

static void only_blocks_that_hold_the_address_count(void **state)
{
	struct world *w = *state;

	give(w, ADDR - 32, 32);
	give(w, ADDR + 1, 32);
	assert_false(address_history_get(w->holders, 0).any);
	assert_false(address_history_get(w->holders, 7).any);
	give(w, ADDR - 31, 32);
	assert_int_equal(address_history_get(w->holders, 0).block.stack, 3);
	take(w, MLK_FREE, 2, ADDR - 32);
	check_end(w, HOLDER_LIVES, 0);
	take(w, MLK_FREE, 9, ADDR - 31);
	check_end(w, HOLDER_FREED, 9);
	give(w, ADDR, 0); /* a block of no bytes has an address all the same */
	assert_int_equal(address_history_get(w->holders, 0).block.addr, ADDR);
}

static void a_realloc_that_failed_frees_nothing(void **state)
{
	struct world *w = *state;

	give(w, ADDR, 47);
	take(w, MLK_RELEASE, 2, ADDR);
	check_end(w, HOLDER_REALLOCATED, 2);
	take(w, MLK_RESTORE, 2, ADDR);
	check_end(w, HOLDER_LIVES, 0);
	take(w, MLK_EXEC, 3, 0);
	check_end(w, HOLDER_GONE, 3);
}

static void mappings_end_where_they_are_unmapped(void **state)
{
	struct world *w = *state;

	send(w, (struct mlk_event){
			.kind = MLK_ALLOC, .func = MLK_FUNC_MMAP, .addr = 0x10000, .size = 0x3000});
	take(w, MLK_UNMAP, 2, 0x11000);
	check_end(w, HOLDER_LIVES, 0);
	take(w, MLK_UNMAP, 2, 0x10000);
	check_end(w, HOLDER_UNMAPPED, 2);
}

static void a_free_that_was_not_seen_is_known_by_the_next_block(void **state)
{
	struct world *w = *state;

	give(w, ADDR - 16, 47);
	give(w, ADDR - 16, 8); /* it does not hold the address */
	check_end(w, HOLDER_FREED, 1);
	assert_int_equal(address_history_get(w->holders, 0).block.size, 47);
}

static void a_child_of_fork_has_what_its_parent_had(void **state)
{
	struct world *w = *state;
	struct mlk_event freed = {.kind = MLK_FREE, .tgid = 200, .tid = 200, .addr = ADDR};

	give(w, ADDR, 47);
	send(w, (struct mlk_event){.kind = MLK_FORK, .tgid = 200, .tid = 200, .addr = TGID});
	assert_true(address_history_get(w->holders, 1).inherited);
	assert_int_equal(address_history_get(w->holders, 1).end, HOLDER_LIVES);
	send(w, freed);
	assert_int_equal(address_history_get(w->holders, 1).end, HOLDER_FREED);
	check_end(w, HOLDER_LIVES, 0);
}

static void neighbours_are_the_nearest_outside_of_the_holder(void **state)
{
	struct world *w = *state;
	struct live_around a;

	give(w, ADDR - 300, 100);
	give(w, ADDR - 100, 50);
	give(w, ADDR - 10, 47);
	give(w, ADDR + 60, 10);
	give(w, ADDR + 90, 10);
	live_look_around(w->live, 0, ADDR, &a);
	assert_true(a.held && a.has_before && a.has_after);
	assert_int_equal(a.holder.addr, ADDR - 10);
	assert_int_equal(a.before.addr, ADDR - 100);
	assert_int_equal(a.after.addr, ADDR + 60);
	live_look_around(w->live, 0, ADDR + 37, &a); /* one byte behind it */
	assert_false(a.held);
	assert_int_equal(a.before.addr, ADDR - 10);
	assert_int_equal(a.after.addr, ADDR + 60);
	live_look_around(w->live, 0, ADDR - 400, &a);
	assert_true(!a.held && !a.has_before && a.has_after);
	live_look_around(w->live, 0, UINT64_MAX, &a);
	assert_true(!a.held && a.has_before && !a.has_after);
}

static void the_least_of_blocks_in_each_other_holds_an_address(void **state)
{
	struct world *w = *state;
	struct live_around a;

	send(w, (struct mlk_event){
			.kind = MLK_ALLOC, .func = MLK_FUNC_MMAP, .addr = 0x10000, .size = 0x3000});
	give(w, ADDR, 47);
	live_look_around(w->live, 0, ADDR + 1, &a);
	assert_int_equal(a.holder.size, 47);
	live_look_around(w->live, 0, ADDR + 47, &a);
	assert_int_equal(a.holder.size, 0x3000);
}

static void an_overrun_is_of_the_block_that_lived_when_it_was_found(void **state)
{
	struct world *w = *state;
	struct mlk_overrun found = {.at = {.kind = MLK_ALLOC,
					   .tgid = TGID,
					   .tid = 1,
					   .time_ns = 2,
					   .addr = ADDR,
					   .size = UINT64_MAX},
				    .offset = -1,
				    .len = 1};
	const struct overrun *o;
	struct overruns *overruns;
	struct stacks *stacks;
	struct dwunw *dw;
	uint32_t number;

	assert_int_equal(dwunw_new(&dw), 0);
	assert_int_equal(stacks_new(&stacks, dw), 0);
	for (uint32_t i = 0; i < 4; i++) {
		struct dwunw_frame frame = {.pc = i};
		uint32_t id;

		assert_int_equal(dwunw_stack_intern(dw, &frame, 1, DWUNW_STATUS_ENDED, &id), 0);
		assert_int_equal(stacks_add(stacks, id, 0, &number), 0);
	}
	assert_int_equal(overruns_new(&overruns), 0);
	assert_int_equal(overruns_note(overruns, &found), 0);
	found.at.time_ns = 99;
	assert_int_equal(overruns_note(overruns, &found), 0);
	assert_int_equal(overruns_sort(overruns, 50, 0), 0);
	assert_int_equal(overruns->nr, 1); /* the other was found later than 50 */
	give(w, ADDR, 47);
	assert_int_equal(overruns_until(overruns, 1, w->live, stacks), 0);
	assert_int_equal(overruns->sites.nr, 0);
	assert_int_equal(overruns_until(overruns, 2, w->live, stacks), 0);
	take(w, MLK_FREE, 1, ADDR);
	give(w, ADDR, 53);
	assert_int_equal(overruns_until(overruns, UINT64_MAX, w->live, stacks), 0);
	o = overruns->all[overruns->sites.all[0].first];
	assert_int_equal(overruns->sites.nr, 1);
	assert_true(o->known && o->looked);
	assert_int_equal(o->block.size, 47);
	assert_int_equal(o->size, 47);
	assert_int_equal(o->alloc_stack, stacks->all[1].id);
	overruns_free(overruns);
	stacks_free(stacks);
	dwunw_free(dw);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST (only_blocks_that_hold_the_address_count),
		TEST (a_realloc_that_failed_frees_nothing),
		TEST (mappings_end_where_they_are_unmapped),
		TEST (a_free_that_was_not_seen_is_known_by_the_next_block),
		TEST (a_child_of_fork_has_what_its_parent_had),
		TEST (neighbours_are_the_nearest_outside_of_the_holder),
		TEST (the_least_of_blocks_in_each_other_holds_an_address),
		TEST (an_overrun_is_of_the_block_that_lived_when_it_was_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
