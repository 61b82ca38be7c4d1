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
#include "record/libpreload/event/stack_diff.c"

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
			zero += image.quiet[i] >= QUIET_ZERO; /* or mixed */
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

/* Whether the processor can do what compare_vaes() takes. */
static void need_vaes(void)
{
	find_width();
	if (!mixes)
		skip();
}

static void what_changed_is_found_by_vaes(void **state)
{
	(void)state;
	need_vaes();
	check(compare_vaes, write_avx2);
}

static void zero_blocks_are_compared_by_vaes(void **state)
{
	(void)state;
	need_vaes();
	zero_blocks_are_compared_as_all_others(compare_vaes);
}

#define DEEP (13 * 1024u) /* bytes: parts of four spans at least */

static uint8_t deep[DEEP + 2 * QUIET_SPAN] __attribute__((aligned(4096)));

/* After long, all blocks of [@a, @b) that are not near @a are mixed with those above. */
__attribute__((target("avx2,vaes"))) static void expect_mixed(uint64_t a, uint64_t b)
{
	uint16_t changed[sizeof(deep) / PRELOAD_SLICE];
	uint64_t top = b & ~(uint64_t)(PRELOAD_BLOCK - 1);

	for (int i = 0; i < 2 * QUIET_SEEN; i++)
		assert_int_equal(compare_vaes(&image, a, b, changed, 0), 0);
	for (uint64_t at = (a + 7 * PRELOAD_SLICE) & ~(uint64_t)(PRELOAD_BLOCK - 1); at < top;
	     at += PRELOAD_BLOCK) {
		uint64_t end = (at + QUIET_SPAN) & ~(uint64_t)(QUIET_SPAN - 1);

		assert_int_equal(image.quiet[block_digest(at)], QUIET_MIXED);
		assert_true(block_digest_same(&image, at, end < top ? end : top));
	}
}

/* A stack of DEEP bytes from @a on that has long been as it is. */
static void let_rest(uint64_t a)
{
	memset(&image, 0, sizeof(image));
	for (uint32_t i = 0; i < DEEP; i++)
		((uint8_t *)a)[i] = (uint8_t)(i % 1024 < 512 ? 0 : next(256));
	for (uint32_t i = 0; i < DEEP; i++)
		image.bytes[(a + i) & (PRELOAD_WINDOW - 1)] = ((uint8_t *)a)[i];
	expect_mixed(a, a + DEEP);
}

/* Of the stack at @a the slices of the bytes @x and @y have changed, or of @x alone. */
static void expect_changed(uint64_t a, uint32_t x, uint32_t y)
{
	uint16_t changed[sizeof(deep) / PRELOAD_SLICE], low, high;

	x /= PRELOAD_SLICE;
	y /= PRELOAD_SLICE;
	low = (uint16_t)(x < y ? x : y);
	high = (uint16_t)(x < y ? y : x);
	assert_int_equal(compare_vaes(&image, a, a + DEEP, changed, 0), low == high ? 1 : 2);
	assert_int_equal(changed[0], low);
	assert_int_equal(changed[low != high], high);
}

static void each_word_that_changes_after_long_is_found(void **state)
{
	uint16_t changed[sizeof(deep) / PRELOAD_SLICE];

	(void)state;
	need_vaes();
	for (uint32_t from = 0; from < 4096; from += 640) {
		uint64_t a = (uint64_t)deep + from;

		let_rest(a);
		for (uint32_t i = 0; i < DEEP; i++) {
			uint8_t was = ((uint8_t *)a)[i];

			((uint8_t *)a)[i] ^= (uint8_t)(1 << next(8));
			expect_changed(a, i, i);
			((uint8_t *)a)[i] = was;
			assert_int_equal(compare_vaes(&image, a, a + DEEP, changed, 0), 0);
		}
	}
}

/* Add @by to the words @x and @y of the stack at @a, or to one and take it from the other. */
static void change_two(uint64_t a, uint32_t x, uint32_t y, uint64_t by, bool opposite)
{
	uint64_t *words = (uint64_t *)a, had[2] = {words[x], words[y]};

	words[x] += by;
	words[y] += opposite ? -by : by;
	expect_changed(a, 8 * x, 8 * y);
	words[x] = had[0];
	words[y] = had[1];
}

static void two_words_that_change_alike_are_found(void **state)
{
	uint64_t a = (uint64_t)deep + 256;

	(void)state;
	need_vaes();
	let_rest(a);
	for (uint32_t x = 0; x < DEEP / 8; x++) {
		uint64_t by = 1 + next(3) * (uint64_t)next(65536);

		/* those of its chain, */
		for (uint32_t y = x % 32; y < x; y += 32)
			change_two(a, x, y, by, next(2));
		/* and others */
		for (int i = 0; x && i < 30; i++)
			change_two(a, x, next(x), by, next(2));
	}
}

/* The slices of [@a + @from slices, @end) that changed are found; most are written. */
static void find_and_write(uint64_t a, uint32_t from, uint64_t end)
{
	uint32_t to[PRELOAD_SLICE / 4 + PRELOAD_SPILL / 4], mask, nr = 0, found;
	uint16_t changed[sizeof(deep) / PRELOAD_SLICE];

	found = compare_vaes(&image, a + from * PRELOAD_SLICE, end, changed, from);
	for (uint64_t at = a + from * PRELOAD_SLICE; at < end; at += PRELOAD_SLICE) {
		if (!memcmp((uint8_t *)at, image_at(image.bytes, at), PRELOAD_SLICE))
			continue;
		assert_true(nr < found);
		assert_int_equal(changed[nr++], (at - a) / PRELOAD_SLICE);
		if (next(4)) /* a lost event writes nothing */
			preload_write(&image, at, to, UINT32_MAX, 0, &mask);
	}
	assert_int_equal(found, nr);
}

/* Events of any depth, with ends that come and go, in which mostly nothing changes; what does comes
 * back. */
static void what_changes_after_long_is_written(void **state)
{
	uint64_t a = (uint64_t)deep, end = a + DEEP;
	uint32_t after_long = 0;

	(void)state;
	need_vaes();
	let_rest(a);
	for (int round = 0; round < 60000; round++) {
		if (!next(1000))
			end = a + DEEP - next(50) * PRELOAD_SLICE;
		if (!next(40)) {
			uint32_t at = next(13) * 1024 + 64 * next(16);

			after_long += image.quiet[block_digest(a + at)] == QUIET_MIXED;
			deep[at] ^= 1;
		}
		find_and_write(a, next(24), end);
	}
	assert_true(after_long > 100);
	for (int i = 0; i < 60; i++)
		find_and_write(a, 0, a + DEEP);
	expect_mixed(a, a + DEEP);
	expect_mixed(a, a + DEEP - 9 * PRELOAD_SLICE);
	expect_mixed(a, a + DEEP - 40 * PRELOAD_SLICE);
	expect_mixed(a, a + DEEP - 7 * PRELOAD_SLICE);
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
		cmocka_unit_test(what_changed_is_found_by_vaes),
		cmocka_unit_test(zero_blocks_are_compared_by_vaes),
		cmocka_unit_test(each_word_that_changes_after_long_is_found),
		cmocka_unit_test(two_words_that_change_alike_are_found),
		cmocka_unit_test(what_changes_after_long_is_written),
		cmocka_unit_test(both_sides_remember_only_what_they_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
