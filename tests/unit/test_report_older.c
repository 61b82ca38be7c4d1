/* test_report_older.c - which blocks of an allocator's walk are from before the recording */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/reach/older.h"

#define BLOCKS 500
#define ROUNDS 300

static uint64_t seed = 1;

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % limit;
}

static bool overlap(uint64_t start, uint64_t end, const struct reach_block *b)
{
	return b->end > start && b->start < end;
}

static bool is_recorded(const struct mlk_heap_block *b, const struct reach_block *recorded,
			size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (overlap(b->address, b->address + b->size, &recorded[i]))
			return true;
	return false;
}

static int by_start(const void *a, const void *b)
{
	const struct reach_block *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* A walk's blocks, and recorded ones here and there: some in a block, some over several. */
static size_t make_blocks(struct mlk_heap_block *blocks, struct reach_block *recorded, size_t *nr)
{
	uint64_t at = 0x7f0000000010;
	size_t all = random_below(BLOCKS);

	*nr = 0;
	for (size_t i = 0; i < all; i++) {
		uint64_t size = 24 + 16 * random_below(20);

		blocks[i] = (struct mlk_heap_block){at, size, 0,
						    (uint8_t)random_below(MLK_HEAP_STATES)};
		if (!random_below(3)) {
			uint64_t start = at + random_below(3) * 16;

			recorded[(*nr)++] =
				(struct reach_block){start, start + 1 + random_below(600), 1};
		}
		at += size + 8 + 16 * random_below(2);
	}
	qsort(recorded, *nr, sizeof(*recorded), by_start);
	return all;
}

static void what_is_in_use_and_not_recorded_is_kept(void **state)
{
	static struct mlk_heap_block blocks[BLOCKS];
	static struct reach_block recorded[BLOCKS];
	static bool was_freed[BLOCKS];

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		size_t nr, all = make_blocks(blocks, recorded, &nr), at = 0, nr_areas;
		struct older older = {.blocks = calloc(all + 1, sizeof(*blocks)), .nr = all};
		struct reach_area *areas;
		struct freed *freed;
		uint64_t free_bytes = 0, expected = 0;

		assert_non_null(older.blocks);
		memcpy(older.blocks, blocks, all * sizeof(*blocks));
		assert_int_equal(freed_new(&freed), 0);
		/* as the events have it, what is in use there came later */
		for (size_t i = 0; i < all; i++) {
			was_freed[i] = !random_below(4) && !is_recorded(&blocks[i], recorded, nr);
			if (was_freed[i])
				assert_int_equal(freed_add(freed, blocks[i].address,
							   blocks[i].address + blocks[i].size),
						 0);
		}
		assert_int_equal(older_keep(&older, recorded, nr, freed), 0);
		for (size_t i = 0; i < all; i++) {
			if (is_recorded(&blocks[i], recorded, nr))
				continue;
			if (was_freed[i])
				expected += blocks[i].size;
			else if (blocks[i].state == MLK_HEAP_USED)
				assert_int_equal(older.blocks[at++].address, blocks[i].address);
			else if (blocks[i].state != MLK_HEAP_CHANGED &&
				 blocks[i].state != MLK_HEAP_OWN)
				expected += blocks[i].size;
		}
		assert_int_equal(at, older.nr);
		assert_int_equal(freed_areas(freed, NULL, 0, &areas, &nr_areas), 0);
		for (size_t i = 0; i < nr_areas; i++)
			free_bytes += areas[i].end - areas[i].start;
		assert_int_equal(free_bytes, expected);
		free(areas);
		freed_free(freed);
		older_release(&older);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_in_use_and_not_recorded_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
