/* test_report_growth_shape.c - which figures make a leak, a cache, a working set */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/stats/growth_shape.h"

#define SIZE 100

static const struct growth_span all = {.nr = GROWTH_SLICES};

/* In each slice @given blocks are allocated, of which at the end so many are left as @kept says by
 * quarters; what is outstanding rises by them. */
static struct growth_stack stack_of(uint32_t given, const uint32_t kept[4])
{
	struct growth_stack stack = {0};
	uint64_t sum = 0;

	for (size_t i = 0; i < GROWTH_SLICES; i++) {
		stack.given[i] = given;
		stack.kept[i] = kept[i / (GROWTH_SLICES / 4)];
		sum += stack.kept[i];
		stack.bytes[i] = sum * SIZE;
	}
	return stack;
}

static void what_is_never_freed_grows(void **state)
{
	struct growth_stack stack = stack_of(10, (const uint32_t[]){10, 10, 10, 10});

	(void)state;
	assert_int_equal(growth_shape_of(&stack, &all, 0), SHAPE_GROWING);
}

/* Nine of ten are freed when they are young. */
static void what_is_left_of_short_lives_grows(void **state)
{
	struct growth_stack stack = stack_of(1000, (const uint32_t[]){100, 103, 98, 150});

	(void)state;
	assert_int_equal(growth_shape_of(&stack, &all, 0.9), SHAPE_GROWING);
}

/* Blocks live for half of the time, but one in ten for ever. */
static void a_plateau_grows_beside_long_lives(void **state)
{
	struct growth_stack stack = stack_of(100, (const uint32_t[]){10, 11, 100, 100});

	(void)state;
	stack.old_frees = stack.late_frees = 1400;
	assert_int_equal(growth_shape_of(&stack, &all, 0.5), SHAPE_GROWING);
}

/* The leak began slowly: less is left of the first quarter, but nothing was freed late. */
static void a_leak_that_becomes_worse_grows(void **state)
{
	struct growth_stack stack = stack_of(100, (const uint32_t[]){5, 10, 20, 40});

	(void)state;
	assert_int_equal(growth_shape_of(&stack, &all, 0.8), SHAPE_GROWING);
}

static void a_cache_of_which_age_takes_its_share_fills(void **state)
{
	struct growth_stack stack = stack_of(100, (const uint32_t[]){45, 55, 70, 90});

	(void)state;
	stack.old_frees = 800;
	stack.late_frees = 400;
	assert_int_equal(growth_shape_of(&stack, &all, 0.35), SHAPE_FILLING);
}

/* Sessions: by chance there are a few more at the end of each quarter. */
static void what_always_ends_is_steady(void **state)
{
	struct growth_stack stack = stack_of(100, (const uint32_t[]){0, 0, 0, 100});

	(void)state;
	for (size_t i = 0; i < GROWTH_SLICES; i++)
		stack.bytes[i] = (800 + i) * SIZE;
	stack.old_frees = stack.late_frees = 2400;
	assert_int_equal(growth_shape_of(&stack, &all, 0.75), SHAPE_STEADY);
}

static void what_is_in_the_place_of_older_blocks_replaces(void **state)
{
	struct growth_stack stack = stack_of(10, (const uint32_t[]){10, 10, 10, 10});
	double gross = growth_rate_of(&stack, &all, 1000000000);

	(void)state;
	/* 16 slices of a second with 10 blocks each */
	assert_true(gross > 999 && gross < 1001);
	stack.replaced = (struct live_amount){160, 160 * SIZE};
	for (size_t i = 0; i < GROWTH_SLICES; i++)
		stack.replaced_then[i] = (float)(i + 1) * 5 * SIZE;
	assert_int_equal(growth_shape_of(&stack, &all, 0), SHAPE_GROWING);
	assert_true(fabs(growth_rate_of(&stack, &all, 1000000000) - gross / 2) < 1);
	stack.replaced = (struct live_amount){300, 300 * SIZE};
	assert_int_equal(growth_shape_of(&stack, &all, 0), SHAPE_REPLACING);
}

/* A full cache and a leak: the older blocks are gone before the second half. */
static void older_blocks_of_the_first_half_do_not_slow_the_second(void **state)
{
	struct growth_stack stack = stack_of(10, (const uint32_t[]){10, 10, 10, 10});

	(void)state;
	stack.replaced = (struct live_amount){160, 160 * SIZE};
	for (size_t i = 0; i < GROWTH_SLICES; i++)
		stack.replaced_then[i] = fminf((float)(i + 1) * 10, 160) * SIZE;
	assert_true(fabs(growth_rate_of(&stack, &all, 1000000000) - 10 * SIZE) < 1);
}

/* The last slice ends before it is over: what it has came in less time. */
static void a_cut_slice_is_as_long_as_it_is(void **state)
{
	struct growth_stack stack = stack_of(10, (const uint32_t[]){10, 10, 10, 10});
	struct growth_span cut = {.nr = GROWTH_SLICES, .missing_ns = 800000000};

	(void)state;
	/* 16 slices, of which the last has 2 blocks in a fifth of a second */
	stack.bytes[GROWTH_SLICES - 1] -= 8 * SIZE;
	assert_true(fabs(growth_rate_of(&stack, &cut, 1000000000) - 10 * SIZE) < 1);
}

/* One in thirty was freed, and late: a cache whose entries live for 30 times as long does so. */
static void a_cache_that_needs_long_is_unclear(void **state)
{
	struct growth_stack stack = stack_of(100, (const uint32_t[]){97, 97, 98, 99});

	(void)state;
	stack.old_frees = 80;
	stack.late_frees = 50;
	assert_int_equal(growth_shape_of(&stack, &all, 0.03), SHAPE_UNCLEAR);
	stack.old_frees = stack.late_frees = 2;
	assert_int_equal(growth_shape_of(&stack, &all, 0.03), SHAPE_GROWING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_never_freed_grows),
		cmocka_unit_test(what_is_left_of_short_lives_grows),
		cmocka_unit_test(a_plateau_grows_beside_long_lives),
		cmocka_unit_test(a_leak_that_becomes_worse_grows),
		cmocka_unit_test(a_cache_of_which_age_takes_its_share_fills),
		cmocka_unit_test(what_always_ends_is_steady),
		cmocka_unit_test(what_is_in_the_place_of_older_blocks_replaces),
		cmocka_unit_test(older_blocks_of_the_first_half_do_not_slow_the_second),
		cmocka_unit_test(a_cut_slice_is_as_long_as_it_is),
		cmocka_unit_test(a_cache_that_needs_long_is_unclear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
