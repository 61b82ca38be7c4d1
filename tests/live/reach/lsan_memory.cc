/* lsan_memory.cc - cases of variables, sizes and mappings */
#include <sys/mman.h>

#include "lsan_cases.h"

static void *initialized = &initialized;
static void *volatile uninitialized;
static uintptr_t numbers[1024];
static char unaligned[24] __attribute__((aligned(8)));

FRAME void use_globals_initialized(void)
{
	initialized = get(1009);
	keep(&initialized);
}

FRAME void use_globals_uninitialized(void)
{
	uninitialized = get(1013);
}

FRAME void user_pointer(void)
{
	for (size_t i = 0; i < 1024; i++)
		numbers[i] = (uintptr_t)get(sizeof(int *));
	keep(numbers);
}

FRAME void use_unaligned(void)
{
	void *block = get(1019);

	memcpy(unaligned + 1, &block, sizeof(block));
	keep(unaligned);
	tell("lost", 1, 1019);
}

FRAME void pointer_to_self(void)
{
	void **block = (void **)get(1021);

	*block = block;
	keep(block);
	tell("lost", 1, 1021);
}

FRAME void large_allocation_leak(void)
{
	lose(32 << 20);
	tell("lost", 1, 32 << 20);
}

FRAME void leak_check_at_exit(void)
{
	lose(1031);
	tell("lost", 1, 1031);
}

FRAME void malloc_zero(void)
{
	uninitialized = get(0);
	lose(0);
	tell("lost", 1, 0);
}

FRAME void realloc_zero(void)
{
	void *block = get(1), *other;

	other = realloc(block, 0);
	keep(other);
	other = realloc(NULL, 0);
	keep(other);
	free(other);
}

FRAME void realloc_too_big(void)
{
	void *block = get(9);
	volatile size_t most = SIZE_MAX / 2 - 4096;

	if (realloc(block, most))
		_exit(98);
	tell("lost", 1, 9);
}

FRAME void realloc_failure_keeps_original(void)
{
	void *block = get(100);
	volatile size_t most = SIZE_MAX / 2 - 4096;

	if (realloc(block, most))
		_exit(98);
	free(block);
}

static FRAME void root_region(bool is_root)
{
	void **area = (void **)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				    -1, 0);

	mprotect(area + 512, 4096, PROT_NONE);
	area[7] = get(1231);
	if (is_root && __lsan_register_root_region)
		__lsan_register_root_region(area, 8192);
}

FRAME void register_root_region(void)
{
	root_region(true);
}

FRAME void unregister_root_region(void)
{
	root_region(false);
}

const struct lsan_case memory_cases[] = {
	CASE(use_globals_initialized),
	CASE(use_globals_uninitialized),
	CASE(user_pointer),
	CASE(use_unaligned),
	CASE(pointer_to_self),
	CASE(large_allocation_leak),
	CASE(leak_check_at_exit),
	CASE(malloc_zero),
	CASE(realloc_zero),
	CASE(realloc_too_big),
	CASE(realloc_failure_keeps_original),
	CASE(register_root_region),
	CASE(unregister_root_region),
	{NULL, NULL},
};
