/* test_record_kallsyms.c - which function of the kernel an address is in */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "record/kernel/kallsyms.h"

#define KERNEL 0xffffffff81000000ull
#define MODULE 0xffffffffc0000000ull

/* Two functions of the kernel and two of a module; a place with three names. */
static char names[] = "_text\0first\0alias\0second\0init\0last";
static struct kallsym functions[] = {
	{.addr = KERNEL, .name = 0, .module = 0},  {.addr = KERNEL, .name = 6, .module = 0},
	{.addr = KERNEL, .name = 12, .module = 0}, {.addr = KERNEL + 0x20, .name = 18},
	{.addr = MODULE, .name = 25, .module = 1}, {.addr = MODULE + 8, .name = 30, .module = 1},
};
static struct kallsyms_module modules[] = {
	{.name = "", .start = KERNEL, .end = KERNEL + 0x1000},
	{.name = "ext4", .start = MODULE, .end = MODULE + 0x1000},
};
static const struct kallsyms all = {.v = functions,
				    .nr = sizeof(functions) / sizeof(functions[0]),
				    .names = names,
				    .names_len = sizeof(names),
				    .modules = modules,
				    .nr_modules = 2,
				    .text = KERNEL};

static void check_name(uint64_t addr, const char *name)
{
	const struct kallsym *found = kallsyms_find(&all, addr);

	if (!name) {
		assert_null(found);
		return;
	}
	assert_non_null(found);
	assert_true(found->addr <= addr);
	assert_string_equal(kallsyms_name(&all, found), name);
}

static void a_function_lasts_to_the_next_one(void **state)
{
	(void)state;
	check_name(KERNEL + 0x1f, "_text");
	check_name(KERNEL + 0x20, "second");
	check_name(KERNEL + 0x21, "second");
	check_name(MODULE, "init");
	check_name(MODULE + 7, "init");
	check_name(MODULE + 8, "last");
}

static void of_several_names_the_first_is_told(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < 0x20; at++)
		check_name(KERNEL + at, "_text");
}

static void below_the_first_and_behind_a_module_is_nothing(void **state)
{
	(void)state;
	check_name(0, NULL);
	check_name(KERNEL - 1, NULL);
	check_name(KERNEL + 0xfff, "second");
	check_name(KERNEL + 0x1000, NULL);
	check_name(MODULE - 1, NULL);
	check_name(MODULE + 0xfff, "last");
	check_name(MODULE + 0x1000, NULL);
	check_name(UINT64_MAX, NULL);
}

/* A copy of the modules, one more behind the two, sized as the kernel says. */
static uint64_t end_with_size(uint64_t size, uint64_t next)
{
	struct kallsyms_module some[] = {
		modules[0], modules[1], {.name = "xfs", .start = next, .end = next + 0x1000}};
	struct kallsyms k = all;

	k.modules = some;
	k.nr_modules = 3;
	kallsyms_set_size(&k, "ext4", size);
	kallsyms_set_size(&k, "unknown", size);
	kallsyms_set_size(&k, "", size);
	assert_true(some[0].end == modules[0].end);
	assert_true(some[2].end == next + 0x1000);
	if (some[1].end > MODULE + 0x1000)
		assert_non_null(kallsyms_find(&k, MODULE + 0x1000));
	return some[1].end;
}

static void a_module_lasts_as_long_as_its_size(void **state)
{
	const uint64_t far = MODULE + 0x100000;

	(void)state;
	assert_true(end_with_size(0x3000, far) == MODULE + 0x3000);
	assert_true(end_with_size(0x3000, MODULE + 0x2000) == MODULE + 0x2000);
	assert_true(end_with_size(0x3000, MODULE - 0x1000) == MODULE + 0x3000);
	/* Never less than what has a name. */
	assert_true(end_with_size(0, far) == MODULE + 0x1000);
	assert_true(end_with_size(UINT64_MAX, far) == MODULE + 0x1000);
}

static void without_functions_nothing_is_found(void **state)
{
	const struct kallsyms none = {0};

	(void)state;
	assert_null(kallsyms_find(&none, 0));
	assert_null(kallsyms_find(&none, UINT64_MAX));
	kallsyms_free(NULL);
}

/* Those of this kernel, where they are shown: each is found by its own address. */
static void each_function_of_this_kernel_is_found(void **state)
{
	struct kallsyms *own;

	(void)state;
	if (kallsyms_read(&own)) {
		assert_null(own);
		skip();
	}
	for (size_t i = 0; i < own->nr; i++) {
		const struct kallsym *found = kallsyms_find(own, own->v[i].addr);

		assert_non_null(found);
		assert_true(found->addr == own->v[i].addr);
		assert_true(!i || own->v[i - 1].addr <= own->v[i].addr);
	}
	assert_non_null(kallsyms_find(own, own->text));
	kallsyms_free(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_lasts_to_the_next_one),
		cmocka_unit_test(of_several_names_the_first_is_told),
		cmocka_unit_test(below_the_first_and_behind_a_module_is_nothing),
		cmocka_unit_test(a_module_lasts_as_long_as_its_size),
		cmocka_unit_test(without_functions_nothing_is_found),
		cmocka_unit_test(each_function_of_this_kernel_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
