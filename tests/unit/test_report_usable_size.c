/* test_report_usable_size.c - sizes as this machine's glibc has them, and as jemalloc's manual */
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
		cmocka_unit_test(sizes_of_glibc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
