/* test_preload_blocks.c - the tables in which the preloaded library keeps what it counts: of
 * blocks, and of threads; by many threads at once */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "record/libpreload/account.h"
/* It is part of no object here, but of the library that is preloaded. */
#include "record/libpreload/event/block_table.c"

#define THREADS	   8
#define NR	   20000u /* blocks of a thread */
#define ROUNDS	   5
#define ALL_PLACES (BLOCK_LINES * BLOCK_LINE)

static struct block_table *table;
static struct preload_account *accounts;
static uint32_t passed[THREADS][NR]; /* 1: the block is in the table, its next thread may free it */

static int begin_anew(void **state)
{
	(void)state;
	table = calloc(1, sizeof(*table));
	accounts = calloc(PRELOAD_MAX_ACCOUNTS, sizeof(*accounts));
	memset(passed, 0, sizeof(passed));
	return !table || !accounts;
}

static int end(void **state)
{
	(void)state;
	free(table);
	free(accounts);
	return 0;
}

static uint64_t addr_of(uint64_t thread, uint64_t i)
{
	return 0x7f0000000010 + (thread << 26) + i * 32;
}

static struct block_info info_of(uint64_t thread, uint64_t i)
{
	return (struct block_info){.size = (1ull << 47) - i * 7 - thread,
				   .tid = (uint32_t)(thread * 1000 + i % 1000),
				   .site = (uint32_t)i,
				   .state = (uint8_t)(1 + i % 3),
				   .generation = (uint16_t)(i % (1u << BLOCK_GENERATION_BITS))};
}

/* How many members of @is are not as they were given. */
static unsigned long differs(const struct block_info *is, uint64_t thread, uint64_t i)
{
	struct block_info was = info_of(thread, i);

	return is->size != was.size || is->tid != was.tid || is->site != was.site ||
	       is->state != was.state || is->generation != was.generation;
}

/* Take the block @i of @thread, if that has put it.  Returns whether it was wrong. */
static unsigned long take_passed(uint64_t thread, uint64_t i)
{
	struct block_info got;
	unsigned long wrong;

	if (!__atomic_load_n(&passed[thread][i], __ATOMIC_ACQUIRE))
		return 0;
	wrong = !block_table_take(table, addr_of(thread, i), &got) || differs(&got, thread, i);
	__atomic_store_n(&passed[thread][i], 0, __ATOMIC_RELEASE);
	return wrong;
}

/* Keep the own blocks that are not kept, and take those of the thread before; returns how many were
 * wrong. */
static void *put_and_take(void *arg)
{
	uint64_t self = (uint64_t)arg, other = (self + 1) % THREADS;
	unsigned long wrong = 0;
	struct block_info old;

	for (uint64_t n = 0; n < ROUNDS * NR; n++) {
		uint64_t i = n % NR;
		struct block_info mine = info_of(self, i);

		if (!__atomic_load_n(&passed[self][i], __ATOMIC_ACQUIRE)) {
			wrong += !block_table_put(table, addr_of(self, i), &mine, &old) ||
				 old.state != BLOCK_UNKNOWN;
			__atomic_store_n(&passed[self][i], 1, __ATOMIC_RELEASE);
		}
		wrong += take_passed(other, i);
	}
	return (void *)wrong;
}

static unsigned long run_threads(void *(*function)(void *))
{
	pthread_t threads[THREADS];
	unsigned long sum = 0;
	void *result;

	for (uint64_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, function, (void *)i), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &result), 0);
		sum += (unsigned long)result;
	}
	return sum;
}

static void blocks_that_threads_pass_on_stay_as_they_are(void **state)
{
	uint64_t left = 0, taken = 0, put = 0;
	struct block_info got;

	(void)state;
	assert_int_equal(run_threads(put_and_take), 0);
	for (uint64_t t = 0; t < THREADS; t++)
		for (uint64_t i = 0; i < NR; i++) {
			put += passed[t][i];
			taken += block_table_take(table, addr_of(t, i), &got);
		}
	for (uint64_t i = 0; i < ALL_PLACES; i++)
		left += table->addrs[i / BLOCK_LINE][i % BLOCK_LINE] != 0;
	assert_int_equal(left, 0);
	assert_int_equal(taken, put);
}

static void a_block_at_an_address_that_is_kept_replaces_it(void **state)
{
	struct block_info first = info_of(1, 5), second = info_of(2, 7), old;

	(void)state;
	assert_true(block_table_put(table, 4096, &first, &old));
	assert_int_equal(old.state, BLOCK_UNKNOWN);
	assert_true(block_table_put(table, 4096, &second, &old));
	assert_int_equal(differs(&old, 1, 5), 0);
	assert_true(block_table_take(table, 4096, &old));
	assert_int_equal(differs(&old, 2, 7), 0);
	assert_false(block_table_take(table, 4096, &old));
}

/* Each block that finds no place is refused, and all others are found again. */
static void a_full_table_refuses(void **state)
{
	uint64_t refused = 0, first = 0, found = 0;
	static bool kept[ALL_PLACES + ALL_PLACES / 8];
	struct block_info got;

	(void)state;
	for (uint64_t i = 0; i < sizeof(kept); i++) {
		struct block_info info = info_of(0, i);

		kept[i] = block_table_put(table, addr_of(0, i), &info, &got);
		refused += !kept[i];
		if (refused == 1 && !kept[i])
			first = i;
	}
	assert_in_range(first, ALL_PLACES / 5 * 4, ALL_PLACES);
	for (uint64_t i = 0; i < sizeof(kept); i++) {
		bool taken = block_table_take(table, addr_of(0, i), &got);

		assert_int_equal(taken, kept[i]);
		assert_int_equal(taken && differs(&got, 0, i), 0);
		found += taken;
	}
	assert_int_equal(found + refused, sizeof(kept));
}

#define KEYS  500u
#define ADDED 20000u

/* Count by keys that all threads have, each from another one on. */
static void *count_by_keys(void *arg)
{
	uint64_t self = (uint64_t)arg;

	for (uint64_t i = 0; i < ADDED; i++) {
		uint64_t key = 7ull << 32 | ((i + self * 61) % KEYS + 1);
		struct preload_account *a = preload_account_find(accounts, key, 1);

		if (!a)
			return (void *)1;
		__atomic_fetch_add(&a->sums.counted.nr, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void accounts_that_threads_make_at_once_count_all(void **state)
{
	uint64_t of_key[KEYS + 1] = {0};

	(void)state;
	assert_int_equal(run_threads(count_by_keys), 0);
	for (uint32_t i = 0; i < PRELOAD_MAX_ACCOUNTS; i++) {
		uint64_t key = accounts[i].key;

		if (!key)
			continue;
		assert_int_equal(key >> 32, 7);
		assert_in_range((uint32_t)key, 1, KEYS);
		of_key[(uint32_t)key] += accounts[i].sums.counted.nr;
	}
	for (uint32_t i = 1; i <= KEYS; i++)
		assert_int_equal(of_key[i], THREADS * ADDED / KEYS);
}

static void an_account_that_is_taken_out_is_made_anew(void **state)
{
	struct preload_account *a = preload_account_find(accounts, 77, 1);

	(void)state;
	assert_non_null(a);
	a->key |= PRELOAD_RETIRED;
	assert_null(preload_account_find(accounts, 77, 0));
	assert_ptr_not_equal(preload_account_find(accounts, 77, 1), a);
}

/* Beyond that there is no place, and it is said. */
static void a_full_table_of_accounts_has_no_place(void **state)
{
	uint64_t nr = 0, key = 1;

	(void)state;
	while (preload_account_find(accounts, key++, 1))
		nr++;
	assert_in_range(nr, PRELOAD_MAX_ACCOUNTS / 2, PRELOAD_MAX_ACCOUNTS);
	for (uint64_t i = 1; i <= nr; i++)
		assert_int_equal(preload_account_find(accounts, i, 0)->key, i);
}

#define WITH_TABLES(test) cmocka_unit_test_setup_teardown(test, begin_anew, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TABLES(blocks_that_threads_pass_on_stay_as_they_are),
		WITH_TABLES(a_block_at_an_address_that_is_kept_replaces_it),
		WITH_TABLES(a_full_table_refuses),
		WITH_TABLES(accounts_that_threads_make_at_once_count_all),
		WITH_TABLES(an_account_that_is_taken_out_is_made_anew),
		WITH_TABLES(a_full_table_of_accounts_has_no_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
