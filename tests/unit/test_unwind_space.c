/* test_unwind_space.c - mappings, ranges and the hash of addresses */
#include <errno.h>

#include "tests/unit/unwind_live.h"
#include "unwind/addr_index.h"
#include "unwind/ranges.h"
#include "unwind/space.h"

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

static void the_innermost_range_is_found(void **state)
{
	struct dwunw_range ranges[40];
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 500; round++) {
		size_t nr = (size_t)round % 41;

		for (size_t i = 0; i < nr; i++) {
			seed = seed * 1103515245 + 12345;
			ranges[i].start = seed >> 16 & 63;
			ranges[i].end = ranges[i].start + (seed >> 23 & 31);
			ranges[i].item = i;
		}
		dwunw_ranges_link(ranges, nr);
		for (uint64_t addr = 0; addr < 100; addr++) {
			const struct dwunw_range *found = dwunw_ranges_find(ranges, nr, addr);
			const struct dwunw_range *expect = NULL;

			for (size_t i = 0; i < nr; i++)
				if (ranges[i].start <= addr && addr < ranges[i].end)
					expect = &ranges[i];
			assert_ptr_equal(found, expect);
		}
	}
	assert_null(dwunw_ranges_find(NULL, 0, 1));
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
		cmocka_unit_test(addresses_are_found_again),
		cmocka_unit_test(every_error_and_status_has_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
