/* test_report_ahead.c - places are filled in their order, prepared once each, and taken in their
 * order, whoever is faster */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "report/base/ahead.h"

#define MOST 3000

/* What the steps leave in each place. */
struct world {
	unsigned int nr, filled; /* to be filled; the thread's */
	int end;		 /* what the filling ends with */
	unsigned int slow_fill, slow_prepare;
	unsigned int numbers[AHEAD_PLACES];
	_Atomic int prepared[MOST];
};

static void dawdle(unsigned int times)
{
	while (times--)
		sched_yield();
}

static int fill(void *arg, size_t place)
{
	struct world *w = arg;

	dawdle(w->slow_fill);
	if (w->filled == w->nr)
		return w->end;
	w->numbers[place] = w->filled++;
	return 1;
}

static void prepare(void *arg, size_t place)
{
	struct world *w = arg;

	dawdle(w->slow_prepare);
	w->prepared[w->numbers[place]]++;
}

static void take_all(unsigned int slow_fill, unsigned int slow_prepare, unsigned int slow_take)
{
	static struct world w;
	const struct ahead_steps steps = {.fill = fill, .prepare = prepare, .arg = &w};
	struct ahead *ahead;
	size_t place;

	w = (struct world){
		.nr = MOST, .end = -EIO, .slow_fill = slow_fill, .slow_prepare = slow_prepare};
	assert_int_equal(ahead_new(&ahead, &steps), 0);
	for (unsigned int i = 0; i < MOST; i++) {
		assert_int_equal(ahead_next(ahead, &place), 1);
		assert_int_equal(w.numbers[place], i);
		assert_int_equal(w.prepared[i], 1);
		dawdle(slow_take);
		assert_int_equal(w.numbers[place], i); /* it is ours until the next call */
	}
	assert_int_equal(ahead_next(ahead, &place), -EIO);
	assert_int_equal(ahead_next(ahead, &place), -EIO);
	ahead_free(ahead);
}

static void test_order_and_once(void **state)
{
	(void)state;
	take_all(0, 0, 0);
	take_all(20, 0, 0);
	take_all(0, 20, 0);
	take_all(0, 0, 20);
	take_all(0, 20, 20);
}

static void test_nothing_to_prepare(void **state)
{
	static struct world w = {.nr = 5};
	const struct ahead_steps steps = {.fill = fill, .arg = &w};
	struct ahead *ahead;
	size_t place;

	(void)state;
	assert_int_equal(ahead_new(&ahead, &steps), 0);
	for (unsigned int i = 0; i < 5; i++) {
		assert_int_equal(ahead_next(ahead, &place), 1);
		assert_int_equal(w.numbers[place], i);
	}
	assert_int_equal(ahead_next(ahead, &place), 0);
	ahead_free(ahead);
}

/* It can be ended while the thread fills, prepares or waits. */
static void test_ended_early(void **state)
{
	(void)state;
	for (unsigned int taken = 0; taken < 50; taken++) {
		static struct world w;
		const struct ahead_steps steps = {.fill = fill, .prepare = prepare, .arg = &w};
		struct ahead *ahead;
		size_t place;

		w = (struct world){.nr = MOST, .slow_prepare = taken % 3};
		assert_int_equal(ahead_new(&ahead, &steps), 0);
		for (unsigned int i = 0; i < taken; i++)
			assert_int_equal(ahead_next(ahead, &place), 1);
		ahead_free(ahead);
		assert_true(w.filled <= taken + AHEAD_PLACES);
	}
	ahead_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_once),
		cmocka_unit_test(test_nothing_to_prepare),
		cmocka_unit_test(test_ended_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
