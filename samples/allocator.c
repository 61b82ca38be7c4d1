/* allocator.c - every function of an allocator, and of mmap's family, whichever library has them
 *
 * It leaks under each function's name, and frees as much as it leaks.  Run under LD_PRELOAD, linked
 * statically or with another C library it has the same answers.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>

#include "sample.h"

enum { PAGE = 4096 };

static struct leak_sum by_malloc, by_calloc, by_realloc, by_posix_memalign, by_aligned_alloc,
	by_memalign, by_mmap, by_mremap, by_large;

/* One kept, one freed. */
#define LEAK(name, call, bytes)                       \
	FRAME static void leak_##name(void)           \
	{                                             \
		void *kept = (call), *freed = (call); \
                                                      \
		leak_add(&by_##name, kept, bytes);    \
		keep(freed);                          \
		free(freed);                          \
		AFTER_CALL();                         \
	}

static void *aligned(size_t alignment, size_t bytes)
{
	void *block = NULL;

	return posix_memalign(&block, alignment, bytes) ? NULL : block;
}

LEAK(malloc, malloc(LEAK_BYTES), LEAK_BYTES)
LEAK(calloc, calloc(3, 19), 3 * 19)
LEAK(realloc, realloc(malloc(7), 1009), 1009)
LEAK(posix_memalign, aligned(64, 67), 67)
LEAK(aligned_alloc, aligned_alloc(64, 128), 128)
LEAK(memalign, memalign(128, 71), 71)
LEAK(large, malloc(1000003), 1000003)

static void *map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Of five pages the second is unmapped, and of five more all. */
FRAME static void leak_mmap(void)
{
	char *at = map(5 * PAGE), *freed = map(5 * PAGE);

	munmap(at + PAGE, PAGE);
	munmap(freed, 5 * PAGE);
	leak_add(&by_mmap, at, PAGE);
	leak_add(&by_mmap, at + 2 * PAGE, 3 * PAGE);
}

/* Grown, and grown in vain. */
FRAME static void leak_mremap(void)
{
	void *at = mremap(map(PAGE), PAGE, 64 * PAGE, MREMAP_MAYMOVE);

	if (mremap(at, 64 * PAGE, SIZE_MAX / 2, MREMAP_MAYMOVE) != MAP_FAILED)
		_exit(98);
	leak_add(&by_mremap, at, 64 * PAGE);
}

#define ANSWER(name) answer(&by_##name, "main;leak_" #name)

int main(void)
{
	for (int i = 0; i < LEAK_BLOCKS; i++) {
		leak_malloc();
		leak_calloc();
		leak_realloc();
		leak_posix_memalign();
		leak_aligned_alloc();
		leak_memalign();
		leak_large();
		leak_mmap();
		leak_mremap();
	}
	ANSWER(malloc);
	ANSWER(calloc);
	ANSWER(realloc);
	ANSWER(posix_memalign);
	ANSWER(aligned_alloc);
	ANSWER(memalign);
	ANSWER(large);
	ANSWER(mmap);
	ANSWER(mremap);
	return 0;
}
