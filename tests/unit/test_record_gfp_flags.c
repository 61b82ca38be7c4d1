/* test_record_gfp_flags.c - the kernel's allocation flags in words
 *
 * The numbers are those of include/linux/gfp.h of 5.10 and 5.15, and of include/linux/gfp_types.h
 * of 6.1, 6.6, 6.12 and 7.3, where GFP_ZERO is 0x100, and so on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <bpf/btf.h>
#include <cmocka.h>

#include "record/kernel/gfp_flags.h"

#define V5_10 "5.10.0-32-amd64"
#define V5_15 "5.15.0-100-generic"
#define V6_1  "6.1.0-18-amd64"
#define V6_6  "6.6.30"
#define V6_10 "6.10.0"
#define V6_12 "6.12.6"
#define V6_18 "6.18.0"

static void check(const struct gfp_flags *f, uint32_t gfp, const char *expected)
{
	char text[512];

	gfp_flags_text(f, gfp, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void tables_are_by_version(void **state)
{
	static const struct {
		const char *release;
		uint32_t gfp;
		const char *text;
	} facts[] = {
		/* the same everywhere */
		{V5_10, 0xcc0, "GFP_KERNEL"},
		{V6_18, 0xcc0, "GFP_KERNEL"},
		{V5_15, 0x400cc0, "GFP_KERNEL_ACCOUNT"},
		{V6_12, 0x400cc0, "GFP_KERNEL_ACCOUNT"},
		{V6_1, 0xc00, "GFP_NOIO"},
		{V6_1, 0xc40, "GFP_NOFS"},
		{V6_6, 0x100cc0, "GFP_USER"},
		{V6_6, 0x100cc2, "GFP_HIGHUSER"},
		{V6_6, 0x1, "GFP_DMA"},
		{V6_6, 0xcc4, "GFP_KERNEL|GFP_DMA32"},
		{V6_6, 0xdc0, "GFP_KERNEL|__GFP_ZERO"},
		{V6_6, 0x152cc0, "GFP_USER|__GFP_NOWARN|__GFP_NORETRY|__GFP_COMP"},
		{V6_1, 0x800000, "__GFP_ZEROTAGS"},
		{V5_10, 0x800000, "__GFP_NOLOCKDEP"},
		/* __GFP_ATOMIC, 0x200, is gone from 6.3 on */
		{V5_15, 0xa20, "GFP_ATOMIC"},
		{V6_1, 0xa20, "GFP_ATOMIC"},
		{V6_1, 0x820, "GFP_NOWAIT|__GFP_HIGH"},
		{V6_6, 0x820, "GFP_ATOMIC"},
		{V6_6, 0xa20, "GFP_ATOMIC|0x200"},
		/* GFP_NOWAIT does not warn from 6.8 on */
		{V6_1, 0x2800, "GFP_NOWAIT|__GFP_NOWARN"},
		{V6_6, 0x800, "GFP_NOWAIT"},
		{V6_12, 0x2800, "GFP_NOWAIT"},
		{V6_12, 0x800, "__GFP_KSWAPD_RECLAIM"},
		/* 5.14 to 5.17 have a bit for KASAN on all machines, */
		{V5_15, 0x1100cca, "GFP_HIGHUSER_MOVABLE"},
		{V5_15, 0x100cca, "GFP_HIGHUSER|__GFP_MOVABLE"},
		{V6_1, 0x100cca, "GFP_HIGHUSER_MOVABLE"},
		{V5_10, 0x100cca, "GFP_HIGHUSER_MOVABLE"},
		{V6_1, 0x1000cc0, "GFP_KERNEL|0x1000000"},
		/* and lockdep's lies behind those bits */
		{V5_15, 0x2000cc0, "GFP_KERNEL|__GFP_NOLOCKDEP"},
		{V6_1, 0x8000cc0, "GFP_KERNEL|__GFP_NOLOCKDEP"},
		{V6_6, 0x4000cc0, "GFP_KERNEL|__GFP_NOLOCKDEP"},
		{V6_10, 0x4000cc0, "GFP_KERNEL|0x4000000"},
		/* huge pages */
		{V6_6, 0x1c20ca, "GFP_TRANSHUGE_LIGHT"},
		{V6_6, 0x1c24ca, "GFP_TRANSHUGE"},
		{V5_15, 0x11c24ca, "GFP_TRANSHUGE"},
		/* nothing, and what nobody knows */
		{V6_6, 0, "0x0"},
		{V6_6, 0x80000000, "0x80000000"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		struct gfp_flags f;

		gfp_flags_init(&f, facts[i].release, NULL);
		check(&f, facts[i].gfp, facts[i].text);
	}
}

/* The enum of 6.18 with CONFIG_LOCKDEP and CONFIG_SLAB_OBJ_EXT, behind one of others. */
static struct btf *types(void)
{
	static const char *const names[] = {
		"DMA",
		"HIGHMEM",
		"DMA32",
		"MOVABLE",
		"RECLAIMABLE",
		"HIGH",
		"IO",
		"FS",
		"ZERO",
		"UNUSED",
		"DIRECT_RECLAIM",
		"KSWAPD_RECLAIM",
		"WRITE",
		"NOWARN",
		"RETRY_MAYFAIL",
		"NOFAIL",
		"NORETRY",
		"MEMALLOC",
		"COMP",
		"NOMEMALLOC",
		"HARDWALL",
		"THISNODE",
		"ACCOUNT",
		"ZEROTAGS",
		"NOLOCKDEP",
		"NO_OBJ_EXT",
		"LAST",
	};
	struct btf *btf = btf__new_empty();
	char name[64];

	assert_non_null(btf);
	assert_true(btf__add_enum(btf, "other", 4) > 0);
	assert_int_equal(btf__add_enum_value(btf, "OTHER_BIT", 3), 0);
	assert_true(btf__add_enum(btf, NULL, 4) > 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(name, sizeof(name), "___GFP_%s_BIT", names[i]);
		assert_int_equal(btf__add_enum_value(btf, name, (__s64)i), 0);
	}
	return btf;
}

static void an_enum_of_the_kernel_says_it_better(void **state)
{
	struct btf *btf = types();
	struct gfp_flags f;

	(void)state;
	gfp_flags_init(&f, V6_18, btf);
	btf__free(btf);
	check(&f, 0x1000cc0, "GFP_KERNEL|__GFP_NOLOCKDEP");
	check(&f, 0x2000dc0, "GFP_KERNEL|__GFP_ZERO|__GFP_NO_OBJ_EXT");
	check(&f, 0x100cca, "GFP_HIGHUSER_MOVABLE");
	check(&f, 0x820, "GFP_ATOMIC");
	check(&f, 0x2800, "GFP_NOWAIT");
}

static void types_without_it_leave_it_to_the_tables(void **state)
{
	struct btf *btf = btf__new_empty();
	struct gfp_flags f;

	(void)state;
	assert_true(btf__add_enum(btf, "other", 4) > 0);
	gfp_flags_init(&f, V6_1, btf);
	btf__free(btf);
	check(&f, 0xa20, "GFP_ATOMIC");
}

static void a_text_that_has_no_room_is_cut(void **state)
{
	struct gfp_flags f;
	char text[16];

	(void)state;
	gfp_flags_init(&f, V6_1, NULL);
	gfp_flags_text(&f, UINT32_MAX, text, sizeof(text));
	assert_string_equal(text, "GFP_TRANSHUGE|G");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_by_version),
		cmocka_unit_test(an_enum_of_the_kernel_says_it_better),
		cmocka_unit_test(types_without_it_leave_it_to_the_tables),
		cmocka_unit_test(a_text_that_has_no_room_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
