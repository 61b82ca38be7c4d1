/* test_report_usable_size.c - sizes as this machine's glibc has them, jemalloc's manual and
 * tcmalloc's table */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "report/reach/usable_size.h"

/* jemalloc(3), "Size classes", 64-bit system with a quantum of 16; up to 4 KiB. */
static const uint64_t classes[] = {8,	 16,   32,   48,   64,	 80,   96,   112,  128, 160,
				   192,	 224,  256,  320,  384,	 448,  512,  640,  768, 896,
				   1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096};

static void sizes_of_jemalloc(void **state)
{
	size_t at = 0;

	(void)state;
	for (uint64_t size = 1; size <= 4096; size++) {
		at += size > classes[at];
		assert_int_equal(usable_size("jemalloc 5.3", size), classes[at]);
		assert_int_equal(usable_size_least(classes[at]), at ? classes[at - 1] + 1 : 0);
	}
	assert_int_equal(usable_size("jemalloc 5.3", 100000), 112 << 10);
	assert_int_equal(usable_size("jemalloc 5.3", UINT64_MAX), UINT64_MAX);
}

/* class_to_size_ of a process with gperftools 2.10, as a debugger shows it; then pages of 8 KiB. */
static const uint64_t table[] = {
	8,	16,	32,	48,	64,	80,	96,	112,	128,	144,	160,
	176,	192,	208,	224,	240,	256,	288,	320,	352,	384,	416,
	448,	480,	512,	576,	640,	704,	768,	896,	1024,	1152,	1280,
	1408,	1536,	1792,	2048,	2304,	2560,	2816,	3072,	3328,	4096,	4608,
	5120,	6144,	6656,	8192,	9216,	10240,	12288,	13312,	16384,	20480,	24576,
	26624,	32768,	40960,	49152,	57344,	65536,	73728,	81920,	90112,	98304,	106496,
	114688, 122880, 131072, 139264, 147456, 155648, 163840, 172032, 180224, 188416, 196608,
	204800, 212992, 221184, 229376, 237568, 245760, 253952, 262144, 270336, 278528};

static void sizes_of_tcmalloc(void **state)
{
	size_t at = 0;

	(void)state;
	for (uint64_t size = 0; size <= 278528; size++) {
		at += size > table[at];
		assert_int_equal(usable_size("tcmalloc", size), table[at]);
		if (table[at] <= 1024)
			assert_true(usable_size_least(table[at]) <= size);
	}
	assert_int_equal(usable_size("tcmalloc", UINT64_MAX), UINT64_MAX);
}

static void sizes_of_glibc(void **state)
{
	(void)state;
	for (uint64_t size = 1; size < 1000; size++) {
		uint64_t usable = usable_size("glibc 2.36", size);
#ifndef __SANITIZE_ADDRESS__
		void *block = malloc((size_t)size);

		assert_int_equal(usable, malloc_usable_size(block));
		free(block);
#endif
		assert_true(usable_size_least(usable) <= size && size <= usable);
	}
	assert_int_equal(usable_size_least(40), 25);
	assert_int_equal(usable_size("", UINT64_MAX), UINT64_MAX);
	assert_int_equal(usable_size_least(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_of_jemalloc),
		cmocka_unit_test(sizes_of_tcmalloc),
		cmocka_unit_test(sizes_of_glibc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
