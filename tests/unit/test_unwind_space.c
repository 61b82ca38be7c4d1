/* test_unwind_space.c - mappings, ranges and the hash of addresses */
#include <errno.h>

#include "tests/unit/unwind_live.h"
#include "unwind/elf/addr_index.h"
#include "unwind/elf/ranges.h"
#include "unwind/module/space.h"

#define NO DWUNW_NO_MODULE

/* The segment at each address below 64 is that of the last mapping that has it. */
static void check_space(struct dwunw *dw, const struct dwunw_mapping *maps, size_t nr)
{
	struct dwunw_space *space;

	assert_int_equal(dwunw_space_new(&space, dw, maps, nr), 0);
	for (uint64_t addr = 0; addr < 64; addr++) {
		const struct dwunw_segment *found = dwunw_space_find(space, addr);
		size_t i = nr;

		while (i > 0 && (addr < maps[i - 1].start || addr >= maps[i - 1].end))
			i--;
		if (!i) {
			assert_null(found);
			continue;
		}
		assert_non_null(found);
		assert_true(found->start <= addr && addr < found->end);
		assert_true(found->start >= maps[i - 1].start && found->end <= maps[i - 1].end);
	}
	dwunw_space_free(space);
}

static void a_later_mapping_wins(void **state)
{
	struct dwunw *dw;
	uint32_t seed = 12345;

	(void)state;
	assert_int_equal(dwunw_new(&dw), 0);
	for (int round = 0; round < 2000; round++) {
		struct dwunw_mapping maps[12];
		size_t nr = (size_t)round % 13;

		for (size_t i = 0; i < nr; i++) {
			seed = seed * 1103515245 + 12345;
			maps[i].start = seed >> 16 & 63;
			maps[i].end = maps[i].start + (seed >> 24 & 15);
			maps[i].file_offset = 0;
			maps[i].module = NO;
		}
		check_space(dw, maps, nr);
	}
	dwunw_free(dw);
}

static void wrong_mappings_are_refused(void **state)
{
	const struct dwunw_mapping backwards = {.start = 2, .end = 1, .module = NO};
	const struct dwunw_mapping stranger = {.start = 1, .end = 2, .module = 0};
	struct dwunw_space *space;
	struct dwunw *dw;

	(void)state;
	assert_int_equal(dwunw_new(&dw), 0);
	assert_int_equal(dwunw_space_new(&space, dw, &backwards, 1), -EINVAL);
	assert_null(space);
	assert_int_equal(dwunw_space_new(&space, dw, &stranger, 1), -EINVAL);
	assert_null(space);
	dwunw_space_free(NULL);
	dwunw_free(dw);
	dwunw_free(NULL);
}

static void the_whole_address_space_can_be_mapped(void **state)
{
	const struct dwunw_mapping maps[] = {{.start = 0, .end = UINT64_MAX, .module = NO},
					     {.start = 5, .end = 9, .module = NO}};
	struct dwunw_space *space;
	struct dwunw *dw;

	(void)state;
	assert_int_equal(dwunw_new(&dw), 0);
	assert_int_equal(dwunw_space_new(&space, dw, maps, 2), 0);
	assert_int_equal(dwunw_space_find(space, 4)->end, 5);
	assert_int_equal(dwunw_space_find(space, 5)->end, 9);
	assert_int_equal(dwunw_space_find(space, UINT64_MAX - 1)->start, 9);
	assert_null(dwunw_space_find(space, UINT64_MAX));
	dwunw_space_free(space);
	dwunw_free(dw);
}

/* Of the ranges that hold @addr, the one that starts last; of those, the shortest; of those, the
 * last. */
static const struct dwunw_range *innermost(const struct dwunw_range *all, size_t nr, uint64_t addr)
{
	const struct dwunw_range *best = NULL;

	for (const struct dwunw_range *r = all; r < all + nr; r++)
		if (r->start <= addr && addr < r->end &&
		    (!best || r->start > best->start ||
		     (r->start == best->start && r->end <= best->end)))
			best = r;
	return best;
}

static void the_innermost_range_is_found(void **state)
{
	struct dwunw_range all[40];
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 500; round++) {
		struct dwunw_ranges ranges = {0};
		size_t nr = (size_t)round % 41;

		for (size_t i = 0; i < nr; i++) {
			seed = seed * 1103515245 + 12345;
			all[i].start = seed >> 16 & 63;
			all[i].end = all[i].start + (seed >> 23 & 31);
			all[i].item = i;
			assert_int_equal(dwunw_ranges_add(&ranges, all[i].start, all[i].end, i), 0);
		}
		assert_int_equal(dwunw_ranges_flatten(&ranges), 0);
		for (size_t i = 1; i < ranges.nr; i++)
			assert_true(ranges.range[i - 1].end <= ranges.range[i].start);
		for (uint64_t addr = 0; addr < 100; addr++) {
			const struct dwunw_range *found = dwunw_ranges_find(&ranges, addr);
			const struct dwunw_range *expect = innermost(all, nr, addr);

			assert_int_equal(!found, !expect);
			if (found)
				assert_int_equal(found->item, expect->item);
		}
		dwunw_ranges_release(&ranges);
	}
}

/* Around one that reaches to the end of all addresses, very many that are nested: no search may go
 * through them one by one. */
static void nested_ranges_cost_no_more_than_others(void **state)
{
	const uint64_t nr = 200000;
	struct dwunw_ranges ranges = {0};

	(void)state;
	assert_int_equal(dwunw_ranges_add(&ranges, 0, UINT64_MAX, nr), 0);
	for (uint64_t i = 0; i < nr; i++)
		assert_int_equal(dwunw_ranges_add(&ranges, i, nr + 1, i), 0);
	assert_int_equal(dwunw_ranges_flatten(&ranges), 0);
	assert_true(ranges.nr <= 2 * (nr + 1));
	assert_int_equal(dwunw_ranges_find(&ranges, nr - 1)->item, nr - 1);
	assert_int_equal(dwunw_ranges_find(&ranges, nr)->item, nr - 1);
	for (uint64_t i = 1; i <= nr; i++)
		assert_int_equal(dwunw_ranges_find(&ranges, nr + i)->item, nr);
	assert_int_equal(dwunw_ranges_find(&ranges, UINT64_MAX - 1)->item, nr);
	assert_null(dwunw_ranges_find(&ranges, UINT64_MAX));
	dwunw_ranges_release(&ranges);
}

static void addresses_are_found_again(void **state)
{
	struct dwunw_addr_index index = {0};

	(void)state;
	assert_int_equal(dwunw_addr_index_find(&index, 1), DWUNW_NOT_FOUND);
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(dwunw_addr_index_add(&index, i * 4096ull, i), 0);
	for (uint32_t i = 0; i < 10000; i++) {
		assert_int_equal(dwunw_addr_index_find(&index, i * 4096ull), i);
		assert_int_equal(dwunw_addr_index_find(&index, i * 4096ull + 1), DWUNW_NOT_FOUND);
	}
	dwunw_addr_index_release(&index);
}

/* How many of 4096 addresses, @step apart, share the first 12 bits of their hash with another. */
static size_t collisions(const struct dwunw_addr_index *index, uint64_t step)
{
	bool taken[4096] = {false};
	size_t nr = 0;

	for (uint64_t i = 0; i < 4096; i++) {
		bool *slot = &taken[dwunw_hash(&index->seed, i * step, 0) & 4095];

		nr += *slot;
		*slot = true;
	}
	return nr;
}

static void no_addresses_collide_by_design(void **state)
{
	/* The last is the inverse of the odd number that an earlier hash multiplied with: the
	 * products were small, and their high bits all zero. */
	const uint64_t steps[] = {
		1, 16, 4096, 1ull << 32, 1ull << 40, 1ull << 52, 0xf1de83e19937733dull};
	struct dwunw_addr_index a = {0}, b = {0};

	(void)state;
	assert_int_equal(0x9e3779b97f4a7c15ull * steps[6], 1);
	assert_int_equal(dwunw_addr_index_add(&a, 1, 1), 0);
	assert_int_equal(dwunw_addr_index_add(&b, 1, 1), 0);
	assert_memory_not_equal(&a.seed, &b.seed, sizeof(a.seed));
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		assert_true(collisions(&a, steps[i]) < 2000);
	dwunw_addr_index_release(&a);
	dwunw_addr_index_release(&b);
}

static void every_error_and_status_has_a_text(void **state)
{
	(void)state;
	for (int status = 0; status < DWUNW_STATUS_NR; status++)
		assert_string_not_equal(dwunw_status_text((enum dwunw_status)status),
					"unknown status");
	assert_string_equal(dwunw_status_text(DWUNW_STATUS_NR), "unknown status");
	assert_string_not_equal(dwunw_strerror(DWUNW_ERR_ELF), "unknown error");
	assert_string_not_equal(dwunw_strerror(DWUNW_ERR_ARCH), "unknown error");
	assert_string_equal(dwunw_strerror(-ENOMEM), "Cannot allocate memory");
	assert_string_equal(dwunw_strerror(-123456), "unknown error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_later_mapping_wins),
		cmocka_unit_test(wrong_mappings_are_refused),
		cmocka_unit_test(the_whole_address_space_can_be_mapped),
		cmocka_unit_test(the_innermost_range_is_found),
		cmocka_unit_test(nested_ranges_cost_no_more_than_others),
		cmocka_unit_test(addresses_are_found_again),
		cmocka_unit_test(no_addresses_collide_by_design),
		cmocka_unit_test(every_error_and_status_has_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
