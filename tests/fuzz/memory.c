/* memory.c - count what is allocated, with the hooks of ASan's allocator */
#include <stdatomic.h>

#include "tests/fuzz/fuzz.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)

/* As sanitizer/allocator_interface.h has them, which not every compiler brings. */
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t),
					      void (*)(const volatile void *));
size_t __sanitizer_get_allocated_size(const volatile void *);

/* Below zero when what was allocated before the count began is freed. */
static atomic_long held;
static long limit;

static void on_malloc(const volatile void *block, size_t size)
{
	(void)block;
	if (atomic_fetch_add(&held, (long)size) + (long)size > limit) {
		fprintf(stderr, "more than %ld bytes are allocated\n", limit);
		abort();
	}
}

static void on_free(const volatile void *block)
{
	if (block)
		atomic_fetch_sub(&held, (long)__sanitizer_get_allocated_size(block));
}

void fuzz_memory_limit(size_t most)
{
	static int installed;

	limit = (long)most;
	if (!installed)
		installed = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
	FUZZ_CHECK(installed);
	atomic_store(&held, 0);
}
#else
void fuzz_memory_limit(size_t most)
{
	(void)most;
}
#endif
