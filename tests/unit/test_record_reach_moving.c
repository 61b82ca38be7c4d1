/* test_record_reach_moving.c - passes go on as long as words move faster than they are apart */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/reach/moving.h"

#define WORDS 300000
#define MS    UINT64_C(1000000)

/* How many passes are taken, at most ten, if in each @share of the words have changed; each takes
 * @walk_ms, the first one @first_ms, and begins @apart_ms after the one before. */
static unsigned int passes(double share, uint64_t walk_ms, uint64_t apart_ms, uint64_t first_ms)
{
	static struct mlk_pointer words[WORDS];
	const size_t part = 70000;
	struct moving m = {0};
	uint64_t seed = 1;
	unsigned int nr = 0;
	bool more = true;

	for (size_t i = 0; i < WORDS; i++)
		words[i] = (struct mlk_pointer){UINT64_C(0x7f0000000000) + 16 * i, i};
	while (nr < 10 && (nr < 3 || more)) {
		const uint64_t begin_ns = nr * apart_ms * MS;

		for (size_t i = 0; i < WORDS; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			if ((double)(seed >> 40) < share * (1 << 24))
				words[i].value++;
		}
		for (size_t i = 0; i < WORDS; i += part)
			moving_take(&m, &words[i], WORDS - i < part ? WORDS - i : part);
		nr++;
		more = moving_end_pass(&m, begin_ns, begin_ns + (nr > 1 ? walk_ms : first_ms) * MS,
				       WORDS, nr);
	}
	assert_true(m.nr_before > MOVING_WORDS / 4 && m.nr_before <= MOVING_WORDS);
	moving_release(&m);
	return nr;
}

static void they_are_as_many_as_words_move(void **state)
{
	(void)state;
	assert_int_equal(passes(0, 100, 150, 100), 3);
	assert_int_equal(passes(0.0005, 100, 150, 100), 3);
	assert_int_equal(passes(0.02, 100, 150, 100), 4);
	assert_int_equal(passes(0.2, 100, 150, 100), 6);
	assert_int_equal(passes(1, 100, 150, 100), 10);
	/* that the first one took long is not forgotten */
	assert_int_equal(passes(0.005, 100, 150, 100), 3);
	assert_int_equal(passes(0.005, 100, 150, 3000), 4);
	/* a short walk misses less */
	assert_int_equal(passes(0.2, 1, 51, 1), 3);
}

/* Words that come and go have moved, too; what is not sampled is not compared. */
static void words_that_come_and_go_have_moved(void **state)
{
	static struct mlk_pointer words[WORDS];
	struct moving m = {0};

	(void)state;
	for (size_t i = 0; i < WORDS; i++)
		words[i] = (struct mlk_pointer){UINT64_C(0x7f0000000000) + 8 * i, i};
	moving_take(&m, words, WORDS / 2);
	assert_true(moving_end_pass(&m, 0, 100 * MS, WORDS, 1) == false);
	moving_take(&m, words, WORDS);
	moving_end_pass(&m, 100 * MS, 200 * MS, WORDS, 2);
	/* half of them, once a pass */
	assert_true(moving_missed(&m, 100e6) > 0.10 && moving_missed(&m, 100e6) < 0.13);
	moving_release(&m);
}

/* All words may be at addresses of which each is in every sample. */
static void words_of_few_addresses_are_bounded(void **state)
{
	struct moving m = {0};
	struct mlk_pointer word = {0, 1};

	(void)state;
	for (size_t i = 0; i < MOVING_WORDS + 10; i++)
		moving_take(&m, &word, 1);
	assert_int_equal(m.nr_now, MOVING_WORDS);
	assert_false(moving_end_pass(&m, 0, 1, MOVING_WORDS, 1));
	moving_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_are_as_many_as_words_move),
		cmocka_unit_test(words_that_come_and_go_have_moved),
		cmocka_unit_test(words_of_few_addresses_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
