/* test_report_temporary.c - which blocks were there for a moment only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "report/stats/stack_stats.h"

enum { ONE = 1, TWO = 2, TGID = 1 };

#define MS UINT64_C(1000000)

struct fixture {
	struct dwunw *dw;
	struct stacks *stacks;
	struct stack_stats *figures;
	struct live *live;
	uint32_t only; /* the report is about blocks of this thread; 0: of all */
	uint64_t now;
};

static void on_change(void *arg, const struct live_change *change)
{
	struct fixture *f = arg;

	if (!f->only || change->block->tid == f->only)
		stack_stats_changed(f->figures, change);
}

static struct fixture *start(void)
{
	struct fixture *f = calloc(1, sizeof(*f));
	uint32_t id, number;

	assert_non_null(f);
	assert_int_equal(dwunw_new(&f->dw), 0);
	assert_int_equal(stacks_new(&f->stacks, f->dw), 0);
	assert_int_equal(dwunw_stack_intern(f->dw, NULL, 0, DWUNW_STATUS_NO_CFI, &id), 0);
	assert_int_equal(stacks_add(f->stacks, id, 0, &number), 0);
	assert_int_equal(stack_stats_new(&f->figures, f->stacks), 0);
	assert_int_equal(live_new(&f->live), 0);
	live_watch(f->live, &(struct live_watch){.changed = on_change, .arg = f});
	f->now = 1000 * MS;
	return f;
}

static void take(struct fixture *f, enum mlk_kind kind, uint32_t tid, uint64_t addr)
{
	struct mlk_event event = {
		.kind = (uint8_t)kind,
		.tgid = TGID,
		.tid = tid,
		.addr = addr,
		.size = 8,
		.time_ns = f->now += MS,
	};

	stack_stats_event(f->figures, &event);
	assert_int_equal(live_event(f->live, &event, 0), 0);
}

/* How many were temporary. */
static uint64_t finish(struct fixture *f)
{
	uint64_t nr;

	live_finish(f->live);
	assert_int_equal(stack_stats_finish(f->figures), 0);
	nr = f->stacks->all[0].temporary;
	live_free(f->live);
	stack_stats_free(f->figures);
	stacks_free(f->stacks);
	dwunw_free(f->dw);
	free(f);
	return nr;
}

static void what_the_next_event_of_the_thread_frees_is_temporary(void **state)
{
	struct fixture *f = start();

	(void)state;
	take(f, MLK_ALLOC, ONE, 0x1000);
	take(f, MLK_ALLOC, TWO, 0x2000); /* another thread */
	take(f, MLK_FREE, ONE, 0x1000);
	take(f, MLK_FREE, TWO, 0x2000);
	assert_int_equal(finish(f), 2);
}

static void another_allocation_or_free_between_makes_it_none(void **state)
{
	struct fixture *f = start();

	(void)state;
	take(f, MLK_ALLOC, ONE, 0x1000);
	take(f, MLK_ALLOC, ONE, 0x2000);
	take(f, MLK_FREE, ONE, 0x1000);
	take(f, MLK_FREE, ONE, 0x2000);
	assert_int_equal(finish(f), 0);
}

static void so_does_a_free_of_a_block_that_was_there_before_the_recording(void **state)
{
	struct fixture *f = start();

	(void)state;
	take(f, MLK_ALLOC, ONE, 0x1000);
	take(f, MLK_FREE, ONE, 0x9000);
	take(f, MLK_FREE, ONE, 0x1000);
	assert_int_equal(finish(f), 0);
}

static void so_does_one_of_a_block_that_the_report_is_not_about(void **state)
{
	struct fixture *f = start();

	(void)state;
	f->only = ONE;
	take(f, MLK_ALLOC, TWO, 0x2000);
	take(f, MLK_ALLOC, ONE, 0x1000);
	take(f, MLK_FREE, ONE, 0x2000);
	take(f, MLK_FREE, ONE, 0x1000);
	assert_int_equal(finish(f), 0);
}

static void what_another_thread_frees_is_none(void **state)
{
	struct fixture *f = start();

	(void)state;
	take(f, MLK_ALLOC, ONE, 0x1000);
	take(f, MLK_FREE, TWO, 0x1000);
	assert_int_equal(finish(f), 0);
}

/* One block lives for 2 ms, one for 3, one at the end. */
static struct fixture *lifetimes(uint64_t limit_ns)
{
	struct fixture *f = start();

	stack_stats_set_temporary(f->figures, limit_ns);
	take(f, MLK_ALLOC, ONE, 0x1000);
	take(f, MLK_ALLOC, ONE, 0x2000);
	take(f, MLK_FREE, TWO, 0x1000);
	take(f, MLK_ALLOC, ONE, 0x3000);
	take(f, MLK_FREE, ONE, 0x2000);
	return f;
}

static void what_lived_no_longer_than_the_limit_is_temporary_whoever_freed_it(void **state)
{
	(void)state;
	assert_int_equal(finish(lifetimes(0)), 0);
	assert_int_equal(finish(lifetimes(2 * MS - 1)), 0);
	assert_int_equal(finish(lifetimes(2 * MS)), 1);
	assert_int_equal(finish(lifetimes(3 * MS)), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_next_event_of_the_thread_frees_is_temporary),
		cmocka_unit_test(another_allocation_or_free_between_makes_it_none),
		cmocka_unit_test(so_does_a_free_of_a_block_that_was_there_before_the_recording),
		cmocka_unit_test(so_does_one_of_a_block_that_the_report_is_not_about),
		cmocka_unit_test(what_another_thread_frees_is_none),
		cmocka_unit_test(what_lived_no_longer_than_the_limit_is_temporary_whoever_freed_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
