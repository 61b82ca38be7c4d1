/* test_report_region.c - the mapping at an address: which snapshot tells it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "report/trace/address_region.h"

static const struct mlk_mapping heap[] = {
	{.start = 0x1000, .end = 0x3000, .perms = 3, .path = "[heap]"}};
static const struct mlk_mapping file[] = {
	{.start = 0x1000, .end = 0x3000, .offset = 0x5000, .perms = 9, .path = "/a file"}};
static const struct mlk_range range[] = {{.start = 0x1000, .end = 0x2000, .perms = 3, .path = ""}};

static struct mlk_regions at(uint64_t time_ns, const struct mlk_mapping *mapping, uint64_t left_out)
{
	return (struct mlk_regions){7, time_ns, left_out, mapping != NULL, mapping};
}

/* What is at 0x2000 by all three of @regions, at 100. */
static enum region_kind kind_by(const struct mlk_regions regions[3])
{
	struct address_region region = {0};
	enum region_kind kind;

	for (int i = 0; i < 3; i++)
		assert_int_equal(address_region_note(&region, &regions[i], 0x2000, 100), 0);
	kind = region.kind;
	address_region_release(&region);
	return kind;
}

static void the_last_one_before_the_moment_counts_else_the_first(void **state)
{
	const struct mlk_regions before[] = {at(50, file, 0), at(100, heap, 0), at(101, NULL, 0)};
	const struct mlk_regions order[] = {at(100, heap, 0), at(50, file, 0), at(101, NULL, 0)};
	const struct mlk_regions behind[] = {at(300, NULL, 0), at(200, file, 0), at(400, heap, 0)};
	const struct mlk_regions gone[] = {at(50, file, 0), at(60, heap, 0), at(70, NULL, 0)};
	const struct mlk_regions late[] = {at(200, file, 0), at(100, heap, 0), at(300, file, 0)};

	(void)state;
	assert_int_equal(kind_by(before), REGION_HEAP);
	assert_int_equal(kind_by(order), REGION_HEAP);
	assert_int_equal(kind_by(behind), REGION_FILE);
	assert_int_equal(kind_by(gone), REGION_NONE);
	assert_int_equal(kind_by(late), REGION_HEAP);
}

static void what_was_left_out_may_be_mapped(void **state)
{
	const struct mlk_regions cut = at(50, heap, 3);
	struct address_region region = {0};

	(void)state;
	assert_int_equal(address_region_note(&region, &cut, 0x3000, 100), 0);
	assert_true(region.cut && region.kind == REGION_UNKNOWN);
	assert_int_equal(address_region_note(&region, &cut, 0x10, 100), 0);
	assert_true(!region.cut && region.kind == REGION_NONE);
	address_region_release(&region);
}

static void passes_count_where_there_is_nothing_else(void **state)
{
	const struct mlk_pass pass = {.tgid = 7, .begin_ns = 90, .nr_ranges = 1, .ranges = range};
	const struct mlk_regions regions = at(50, heap, 0);
	struct address_region region = {0};

	(void)state;
	assert_int_equal(address_region_note_pass(&region, &pass, 0x2000, 100), 0);
	assert_int_equal(region.kind, REGION_UNKNOWN); /* it may be mapped, and not be writable */
	assert_int_equal(address_region_note_pass(&region, &pass, 0x1fff, 100), 0);
	assert_int_equal(region.kind, REGION_ANONYMOUS);
	assert_true(region.from_pass && region.time_ns == 90);
	assert_int_equal(address_region_note(&region, &regions, 0x1fff, 100), 0);
	assert_int_equal(region.kind, REGION_HEAP);
	assert_int_equal(address_region_note_pass(&region, &pass, 0x1fff, 100), 0);
	assert_int_equal(region.kind, REGION_HEAP);
	address_region_release(&region);
}

/* What is printed of 0x1010 in @mapping. */
static void check_text(const char *expected, const struct mlk_mapping *mapping)
{
	struct mlk_regions regions = at(50, mapping, 0);
	struct address_region region = {0};
	char text[200] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");

	assert_non_null(out);
	assert_int_equal(address_region_note(&region, &regions, 0x1010, 100), 0);
	address_region_print(out, &region);
	fclose(out);
	assert_string_equal(text, expected);
	address_region_release(&region);
}

static void each_kind_has_its_text(void **state)
{
	const struct mlk_mapping anonymous = {.start = 0x1000, .end = 0x2000, .path = ""};
	const struct mlk_mapping named = {.start = 0x1000, .end = 0x2000, .path = "[anon:x\n]"};
	const struct mlk_mapping vdso = {
		.start = 0x1000, .end = 0x2000, .perms = 5, .path = "[vdso]"};
	const struct mlk_mapping stack = {
		.start = 0x1000, .end = 0x2000, .perms = 3, .path = "[stack]"};

	(void)state;
	check_text("nothing was mapped there", NULL);
	check_text("it is in the heap, 0x1000-0x3000 rw-p", heap);
	check_text("it is in /a file (+0x5010), 0x1000-0x3000 r--s", file);
	check_text("it is in anonymous memory, 0x1000-0x2000 ---p", &anonymous);
	check_text("it is in anonymous memory [anon:x\\x0A], 0x1000-0x2000 ---p", &named);
	check_text("it is in [vdso], 0x1000-0x2000 r-xp", &vdso);
	check_text("it is in the main thread's stack, 0x1000-0x2000 rw-p", &stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_one_before_the_moment_counts_else_the_first),
		cmocka_unit_test(what_was_left_out_may_be_mapped),
		cmocka_unit_test(passes_count_where_there_is_nothing_else),
		cmocka_unit_test(each_kind_has_its_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
