/* test_report_growth_track.c - the slices and ages that are kept say the same as a list of all that
 * happened, however often two slices become one */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/stats/growth_track.h"

#define ROUNDS 300
#define EVENTS 400
#define BLOCK  47

/* A block came or went; times are in slices of the first width. */
struct happened {
	size_t at, since; /* now, and when it was allocated */
	bool freed;
};

static struct happened list[EVENTS];
static size_t nr;
static struct pool pool; /* of the tracks of a test */

/* Slice @at of those that are 2^@doubled as wide, by the list alone. */
static struct growth_slice expected(size_t at, unsigned int doubled)
{
	struct growth_slice slice = {0};
	uint64_t now = 0;

	for (size_t i = 0; i < nr && list[i].at >> doubled < at; i++)
		now += list[i].freed ? -(uint64_t)BLOCK : BLOCK;
	slice.most = now;
	for (size_t i = 0; i < nr; i++) {
		if (list[i].at >> doubled == at) {
			now += list[i].freed ? -(uint64_t)BLOCK : BLOCK;
			slice.most = now > slice.most ? now : slice.most;
		}
		if (list[i].since >> doubled == at)
			++*(list[i].freed ? &slice.gone : &slice.given);
	}
	slice.bytes = now;
	return slice;
}

static void happen(struct growth_track *track, unsigned int doubled, const struct happened *what)
{
	struct growth_slice *cohort = growth_track_slice(track, &pool, what->since >> doubled);

	assert_non_null(cohort);
	++*(what->freed ? &cohort->gone : &cohort->given);
	assert_int_equal(growth_track_add(track, &pool, what->at >> doubled,
					  what->freed ? -(uint64_t)BLOCK : BLOCK),
			 0);
	list[nr++] = *what;
}

static void assert_all_slices(const struct growth_track *track, unsigned int doubled)
{
	for (size_t at = 0; at < GROWTH_SLICES; at++) {
		struct growth_slice is = growth_track_at(track, at), want = expected(at, doubled);

		assert_int_equal(is.bytes, want.bytes);
		assert_int_equal(is.most, want.most);
		assert_int_equal(is.given, want.given);
		assert_int_equal(is.gone, want.gone);
	}
}

static void slices_are_those_of_the_list(void **state)
{
	(void)state;
	srand(47);
	for (int round = 0; round < ROUNDS; round++) {
		struct growth_track track = {0};
		unsigned int doubled = 0;
		size_t now = 0, live[EVENTS], nr_live = 0;
		const int step = 1 + rand() % 5;

		nr = 0;
		while (nr < EVENTS / (size_t)step) {
			struct happened what = {.at = now, .since = now};

			now += (size_t)(rand() % (1 + rand() % (step * 3)));
			for (what.at = what.since = now; now >> doubled >= GROWTH_SLICES; doubled++)
				growth_track_widen(&track);
			what.freed = nr_live && rand() % 5 < 2;
			if (what.freed) {
				size_t i = (size_t)rand() % nr_live;

				what.since = live[i];
				live[i] = live[--nr_live];
			} else {
				live[nr_live++] = now;
			}
			happen(&track, doubled, &what);
		}
		assert_all_slices(&track, doubled);
		pool_release(&pool);
	}
}

/* An event of another thread may come some microseconds late: it counts in the last slice. */
static void what_is_late_counts_in_the_last_slice(void **state)
{
	struct growth_track track = {0};

	(void)state;
	assert_int_equal(growth_track_add(&track, &pool, 5, BLOCK), 0);
	assert_int_equal(growth_track_add(&track, &pool, 4, BLOCK), 0);
	assert_int_equal(growth_track_at(&track, 4).bytes, 0);
	assert_int_equal(growth_track_at(&track, 5).bytes, 2 * BLOCK);
	assert_int_equal(growth_track_at(&track, 31).bytes, 2 * BLOCK);
	pool_release(&pool);
}

/* The class of each age, by its definition: less than 2^i us, and not less than half of it. */
static void ages_are_in_their_classes(void **state)
{
	uint64_t want[GROWTH_LIFETIMES] = {0};
	struct growth_track track = {0};

	(void)state;
	for (int bit = 62; bit >= -1; bit -= 3)
		for (uint64_t more = 0; more < 3; more++) {
			uint64_t us = (bit < 0 ? 0 : (uint64_t)1 << bit) + more;
			size_t i = 0;

			while (i < GROWTH_LIFETIMES - 1 && us >= (uint64_t)1 << i)
				i++;
			want[i] += 23;
			assert_int_equal(growth_track_freed(&track, &pool, us, 23), 0);
		}
	for (size_t i = 0; i < GROWTH_LIFETIMES; i++)
		assert_int_equal(growth_track_age(&track, i).blocks, want[i]);
	pool_release(&pool);
}

/* Shares stay as they are when one of them has no room any more. */
static void shares_of_a_class_are_kept(void **state)
{
	struct growth_track track = {0};
	struct growth_age age;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		assert_int_equal(growth_track_freed(&track, &pool, 1024, 1), 0);
		if (i % 3 == 0)
			assert_int_equal(growth_track_freed(&track, &pool, 1024 + 7 * 128, 1), 0);
	}
	age = growth_track_age(&track, 11);
	assert_int_equal(age.blocks, 4000);
	assert_in_range(age.parts[0] * 10 / age.parts[7], 28, 32);
	assert_int_equal(age.parts[1] + age.parts[2] + age.parts[3], 0);
	pool_release(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slices_are_those_of_the_list),
		cmocka_unit_test(what_is_late_counts_in_the_last_slice),
		cmocka_unit_test(ages_are_in_their_classes),
		cmocka_unit_test(shares_of_a_class_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
