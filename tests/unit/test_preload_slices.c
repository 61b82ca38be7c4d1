/* test_preload_slices.c - which slices and words changed, by all ways to compare; and what both
 * sides remember of a stack */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* It is part of no object here, but of the library that is preloaded. */
#include "record/preload/slices.c"

#define SLICES 37u

static uint8_t stack[SLICES * PRELOAD_SLICE] __attribute__((aligned(128)));
static struct preload_known image;
static uint32_t seed = 1;

static uint32_t next(uint32_t below)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % below;
}

typedef uint32_t compare_fn(struct preload_known *, uint64_t, uint64_t, uint16_t *, uint32_t);
typedef uint32_t *write_fn(uint8_t *, const uint8_t *, uint32_t *, uint32_t, uint32_t *);

/* @slice, of which @wanted is asked for and @all is given in any case, against what is known. */
static void check_write(write_fn *write, const uint8_t *slice, uint8_t *known, uint32_t wanted,
			uint32_t all)
{
	uint32_t to[PRELOAD_SLICE / 4 + PRELOAD_SPILL / 4], before[PRELOAD_SLICE / 4];
	uint32_t mask = all, expected = 0, nr = 0, *end;

	memcpy(before, known, sizeof(before));
	end = write(known, slice, to, wanted, &mask);
	for (uint32_t i = 0; i < PRELOAD_SLICE / 4; i++) {
		bool changed = memcmp(slice + i * 4, &before[i], 4) != 0 || all >> i & 1;
		bool given = changed && wanted >> i & 1;

		expected |= (uint32_t)given << i;
		assert_memory_equal(known + i * 4, given ? slice + i * 4 : (uint8_t *)&before[i],
				    4);
		if (given)
			assert_memory_equal(&to[nr++], slice + i * 4, 4);
	}
	assert_int_equal(mask, expected);
	assert_ptr_equal(end, to + nr);
}

static void check(compare_fn *compare, write_fn *write)
{
	uint64_t a = (uint64_t)stack;
	uint16_t changed[SLICES];

	memset(image.quiet, 0, sizeof(image.quiet));
	for (int round = 0; round < 5000; round++) {
		uint32_t nr = next(SLICES + 1), changes = next(4), found, expected = 0;

		for (uint32_t i = 0; i < sizeof(stack); i++)
			image.bytes[(a + i) & (PRELOAD_WINDOW - 1)] = stack[i] = (uint8_t)next(256);
		while (changes--)
			stack[next(sizeof(stack))] ^= (uint8_t)(1 << next(8));
		found = compare(&image, a, a + nr * PRELOAD_SLICE, changed, 5);
		for (uint32_t i = 0; i < nr; i++) {
			const uint8_t *s = stack + i * PRELOAD_SLICE;
			uint8_t *known = image.bytes + ((uint64_t)s & (PRELOAD_WINDOW - 1));

			if (memcmp(s, known, PRELOAD_SLICE)) {
				assert_true(expected < found);
				assert_int_equal(changed[expected++], i + 5);
			}
			check_write(write, s, known, next(4) ? UINT32_MAX : UINT32_MAX << next(32),
				    next(8) ? 0 : UINT32_MAX);
		}
		assert_int_equal(found, expected);
	}
}

static void what_changed_is_found_by_sse2(void **state)
{
	(void)state;
	check(compare_sse2, write_sse2);
}

static void what_changed_is_found_by_avx2(void **state)
{
	(void)state;
	find_width();
	if (width < WIDTH_AVX2)
		skip();
	check(compare_avx2, write_avx2);
}

static void what_changed_is_written_by_avx512(void **state)
{
	(void)state;
	find_width();
	if (width < WIDTH_AVX512)
		skip();
	check(compare_avx2, write_avx512);
}

/* One byte of the stack becomes zero, or another.  Mostly zero as it is, blocks of it come and go.
 */
static void change_a_byte(void)
{
	uint32_t at = next(8) ? next(SLICES) * PRELOAD_SLICE : next(sizeof(stack));

	stack[at] = next(3) ? 0 : (uint8_t)next(256);
}

static void zero_blocks_are_compared_as_all_others(compare_fn *compare)
{
	uint64_t a = (uint64_t)stack;
	uint32_t to[PRELOAD_SLICE / 4 + PRELOAD_SPILL / 4], mask, zero = 0;
	uint16_t changed[SLICES];

	memset(&image, 0, sizeof(image));
	memset(stack, 0, sizeof(stack));
	for (int round = 0; round < 100000; round++) {
		uint32_t from = next(8), found, nr = 0;

		if (!next(16))
			change_a_byte();
		found = compare(&image, a + from * PRELOAD_SLICE, a + sizeof(stack), changed, from);
		for (uint32_t i = from; i < SLICES; i++) {
			uint64_t at = a + i * PRELOAD_SLICE;

			if (!memcmp((uint8_t *)at, image_at(image.bytes, at), PRELOAD_SLICE))
				continue;
			assert_true(nr < found);
			assert_int_equal(changed[nr++], i);
			preload_write(&image, at, to, UINT32_MAX, 0, &mask);
			assert_memory_equal((uint8_t *)at, image_at(image.bytes, at),
					    PRELOAD_SLICE);
		}
		assert_int_equal(found, nr);
		for (uint32_t i = 0; i < PRELOAD_WINDOW / PRELOAD_BLOCK; i++)
			zero += image.quiet[i] == QUIET_ZERO;
	}
	assert_true(compare == compare_sse2 || zero);
}

static void zero_blocks_are_compared_by_sse2(void **state)
{
	(void)state;
	find_width();
	zero_blocks_are_compared_as_all_others(compare_sse2);
}

static void zero_blocks_are_compared_by_avx2(void **state)
{
	(void)state;
	find_width();
	if (width < WIDTH_AVX2)
		skip();
	zero_blocks_are_compared_as_all_others(compare_avx2);
}

/* What is remembered holds the new span, is no more than fits, and nothing of it was overwritten by
 * another address. */
static void both_sides_remember_only_what_they_know(void **state)
{
	static uint64_t tags[PRELOAD_WINDOW / PRELOAD_SLICE];
	struct preload_image known = {0, 0};

	(void)state;
	for (int round = 0; round < 100000; round++) {
		uint64_t a = 0x7f0000000000 + (uint64_t)next(3000) * PRELOAD_SLICE;
		uint64_t b = a + (1 + (uint64_t)next(PRELOAD_MAX_SLICES)) * PRELOAD_SLICE;

		for (uint64_t at = a; at < b; at += PRELOAD_SLICE)
			tags[at / PRELOAD_SLICE % (PRELOAD_WINDOW / PRELOAD_SLICE)] = at;
		preload_image_note(&known, a, b);
		assert_true(known.lo <= a && known.hi >= b);
		assert_true(known.hi - known.lo <= PRELOAD_WINDOW);
		for (uint64_t at = known.lo; round % 50 == 0 && at < known.hi; at += PRELOAD_SLICE)
			assert_int_equal(
				tags[at / PRELOAD_SLICE % (PRELOAD_WINDOW / PRELOAD_SLICE)], at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_changed_is_found_by_sse2),
		cmocka_unit_test(what_changed_is_found_by_avx2),
		cmocka_unit_test(what_changed_is_written_by_avx512),
		cmocka_unit_test(zero_blocks_are_compared_by_sse2),
		cmocka_unit_test(zero_blocks_are_compared_by_avx2),
		cmocka_unit_test(both_sides_remember_only_what_they_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
