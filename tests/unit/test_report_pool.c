/* test_report_pool.c - things of a pool keep what is in them, whatever becomes of others */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/base/pool.h"

#define THINGS 500
#define STEPS  20000

struct thing {
	uint8_t *bytes;
	size_t size;
};

/* What byte @at of thing @i is. */
static uint8_t pattern(size_t i, size_t at)
{
	return (uint8_t)(i * 31 + at * 7);
}

static void things_keep_what_is_in_them(void **state)
{
	static struct thing all[THINGS];
	struct pool pool = {0};

	(void)state;
	srand(47);
	for (int step = 0; step < STEPS; step++) {
		size_t i = (size_t)rand() % THINGS, had = all[i].size;
		size_t size = had ? 2 * had : POOL_UNIT * (1 + (size_t)rand() % 4);

		if (size > POOL_MOST)
			continue;
		all[i].bytes = pool_enlarge(&pool, all[i].bytes, had, size);
		assert_non_null(all[i].bytes);
		assert_int_equal((uintptr_t)all[i].bytes % POOL_UNIT, 0);
		all[i].size = size;
		for (size_t at = had; at < size; at++)
			all[i].bytes[at] = pattern(i, at);
	}
	for (size_t i = 0; i < THINGS; i++)
		for (size_t at = 0; at < all[i].size; at++)
			assert_int_equal(all[i].bytes[at], pattern(i, at));
	pool_release(&pool);
	assert_null(pool.chunks);
}

static void what_was_given_back_is_used_again(void **state)
{
	struct pool pool = {0};
	char *small = pool_enlarge(&pool, NULL, 0, 16), *large;

	(void)state;
	assert_non_null(small);
	memcpy(small, "sixteen bytes...", 16);
	large = pool_enlarge(&pool, small, 16, 32);
	assert_non_null(large);
	assert_memory_equal(large, "sixteen bytes...", 16);
	assert_ptr_equal(pool_enlarge(&pool, NULL, 0, 16), small);
	pool_release(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(things_keep_what_is_in_them),
		cmocka_unit_test(what_was_given_back_is_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
