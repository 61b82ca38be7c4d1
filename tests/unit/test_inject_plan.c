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

static struct inject_plan *plan;
static struct image image;

/* A plan of changes of @funcs, in two islands in turn, that have no slots yet. */
static void set_up(const uint32_t *funcs, size_t nr)
{
	memset(plan, 0, sizeof(*plan));
	plan->nr_islands = 2;
	plan->islands[0].at = ISLAND;
	plan->islands[1].at = ISLAND + INJECT_ISLAND;
	plan->nr = nr;
	for (size_t i = 0; i < nr; i++) {
		plan->numbers[i] = 100 + (uint32_t)i;
		plan->sites[i].func = funcs[i];
		plan->sites[i].stub = INJECTED_LOADER;
		plan->sites[i].moved = plan->islands[i % 2].at + APART * (i / 2) + SLOT;
	}
	inject_plan_samples(plan, &image, BASE);
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

static void the_only_malloc_and_free(void **state)
{
	static const uint32_t funcs[] = {FUNC_CALLOC, FUNC_FREE, FUNC_DELETE, FUNC_NEW,
					 FUNC_MALLOC};

	(void)state;
	set_up(funcs, 5);
	for (size_t i = 0; i < 4; i++)
		assert_leads_to(i, i == 1 ? INJECTED_SAMPLED_FREE : INJECTED_LOADER);
	assert_leads_to(4, INJECTED_SAMPLED_MALLOC);
}

static void one_that_may_call_another(void **state)
{
	static const uint32_t two[] = {FUNC_MALLOC, FUNC_FREE, FUNC_MALLOC, FUNC_CALLOC};
	static const uint32_t both[] = {FUNC_MALLOC, FUNC_FREE, FUNC_CALLOC, FUNC_FREE};
	static const uint32_t none[] = {FUNC_NEW, FUNC_FREE, FUNC_CALLOC, FUNC_REALLOC};
	const uint32_t *all[] = {two, both, none};

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		set_up(all[k], 4);
		for (size_t i = 0; i < 4; i++)
			assert_leads_to(i, INJECTED_LOADER);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_only_malloc_and_free),
		cmocka_unit_test(one_that_may_call_another),
	};
	int failed;

	plan = malloc(sizeof(*plan));
	if (!plan || image_get(&image))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(plan);
	return failed;
}
