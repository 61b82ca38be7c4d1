/* test_report_sort_blocks.c - blocks are sorted as qsort(3) sorts them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/reach/graph/sort_blocks.h"

static uint64_t seed = 1;

static uint64_t random_word(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed ^ seed >> 29;
}

static int by_start(const void *a, const void *b)
{
	const struct reach_block *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Blocks that begin where @bits of an address differ, each of which can be told by its time. */
static void check(size_t nr, uint64_t bits, uint64_t base)
{
	struct reach_block *blocks = calloc(nr + 1, sizeof(*blocks));
	struct reach_block *sorted = calloc(nr + 1, sizeof(*sorted));
	uint64_t times = 0;

	assert_non_null(blocks);
	assert_non_null(sorted);
	for (size_t i = 0; i < nr; i++) {
		uint64_t start = base | (random_word() & bits);

		/* the end is made of the two others */
		blocks[i] = (struct reach_block){start, start + 3 * i, i};
		times += i;
	}
	memcpy(sorted, blocks, nr * sizeof(*blocks));
	qsort(sorted, nr, sizeof(*sorted), by_start);
	sort_blocks(blocks, nr);
	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(blocks[i].start, sorted[i].start);
		assert_int_equal(blocks[i].end, blocks[i].start + 3 * blocks[i].time_ns);
		times -= blocks[i].time_ns;
	}
	assert_int_equal(times, 0);
	free(blocks);
	free(sorted);
}

static void test_as_qsort(void **state)
{
	static const size_t numbers[] = {0, 1, 2, 100, 4096, 4097, 30000};
	static const uint64_t bits[] = {0,
					0xfff0,
					UINT64_C(0x7fffffffff0),
					UINT64_C(0x8000000000000010),
					UINT64_C(0xffe0000000000000),
					UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		for (size_t k = 0; k < sizeof(bits) / sizeof(*bits); k++) {
			check(numbers[i], bits[k], 0);
			check(numbers[i], bits[k], UINT64_C(0x00007f0000000000));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_qsort)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
