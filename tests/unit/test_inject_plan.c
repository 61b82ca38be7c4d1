/* test_inject_plan.c - which functions lead to the stubs of samples */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/event.h"
#include "record/inject/plan.h"

#define ISLAND 0x200000ull
#define APART  128u /* bytes from a slot to the next one */
#define SLOT   32u
#define BASE   0x7000000ull
#define NR     6u

static struct inject_plan *plan;
static struct allocators *allocators;
static struct image image;

/* A plan of changes of functions in two files: malloc and free of the first one, which is at
 * @first, and of the second, at @second, that and calloc.  There are no slots yet. */
static void plan_for(char *first, bool is_program, char *second)
{
	static const uint32_t funcs[] = {FUNC_MALLOC, FUNC_MALLOC, FUNC_FREE,
					 FUNC_FREE,   FUNC_CALLOC, FUNC_CALLOC};

	memset(plan, 0, sizeof(*plan));
	memset(allocators, 0, sizeof(*allocators));
	plan->nr_islands = allocators->nr = 2;
	plan->islands[0].at = ISLAND;
	plan->islands[1].at = ISLAND + INJECT_ISLAND;
	allocators->v[0].path = first;
	allocators->v[0].is_program = is_program;
	allocators->v[1].path = second;
	plan->nr = NR;
	for (size_t i = 0; i < NR; i++) {
		plan->numbers[i] = 100 + (uint32_t)i;
		plan->sites[i].func = funcs[i];
		plan->sites[i].stub = INJECTED_LOADER;
		plan->sites[i].moved = plan->islands[i % 2].at + APART * (i / 2) + SLOT;
	}
	inject_plan_samples(plan, allocators, &image, BASE);
}

/* The slot of site @i is of @stub; INJECTED_LOADER: it is as it was. */
static void assert_leads_to(size_t i, uint32_t stub)
{
	const uint8_t *slot = plan->code[i % 2] + APART * (i / 2);
	uint8_t expected[24] = {0};
	const uint64_t to = BASE + image.stubs[stub];
	const uint32_t number = 100 + (uint32_t)i;

	assert_int_equal(plan->sites[i].stub, stub);
	if (stub != INJECTED_LOADER) {
		memcpy(expected, "\x41\xbb", 2); /* mov $number, %r11d */
		memcpy(expected + 2, &number, 4);
		memcpy(expected + 6, "\xff\x25\4\0\0\0", 6); /* jmp *4(%rip) */
		memcpy(expected + 16, &to, 8);
	}
	assert_memory_equal(slot, expected, sizeof(expected));
}

static void of_the_c_library(void **state)
{
	(void)state;
	plan_for("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", false,
		 "/usr/lib/x86_64-linux-gnu/libc.so.6");
	for (size_t i = 0; i < NR; i++)
		assert_leads_to(i, i == 1   ? INJECTED_SAMPLED_MALLOC
				   : i == 3 ? INJECTED_SAMPLED_FREE
					    : INJECTED_LOADER);
	plan_for("/lib/libc.so.6", false, "/lib/libother.so");
	assert_leads_to(0, INJECTED_SAMPLED_MALLOC);
	assert_leads_to(2, INJECTED_SAMPLED_FREE);
}

static void of_no_other(void **state)
{
	(void)state;
	plan_for("/usr/bin/libc.so.6", true, "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2");
	for (size_t i = 0; i < NR; i++)
		assert_leads_to(i, INJECTED_LOADER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_the_c_library),
		cmocka_unit_test(of_no_other),
	};
	int failed;

	plan = malloc(sizeof(*plan));
	allocators = malloc(sizeof(*allocators));
	if (!plan || !allocators || image_get(&image))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(plan);
	free(allocators);
	return failed;
}
