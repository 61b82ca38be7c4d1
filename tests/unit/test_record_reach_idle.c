/* test_record_reach_idle.c - memory in which nothing of a program's is, in one that is made up */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/trace.h"
#include "record/reach/idle.h"

/* The memory: the loader's data, two stacks, and jemalloc's own. */
#define LOADER 0x100000u
#define STACKS 0x200000u
#define STACK  0x8000u
#define BASE   0x400000u
#define SIZE   0x800000u

#define LINK	   0x2c0u
#define DESCRIPTOR 0x7000u /* in a stack */

static uint8_t *memory;

static uint64_t *word(uint64_t address)
{
	return (uint64_t *)(void *)(memory + address);
}

static int read_memory(void *arg, uint64_t address, void *to, size_t bytes)
{
	(void)arg;
	if (address > SIZE || SIZE - address < bytes)
		return -1;
	memcpy(to, memory + address, bytes);
	return 0;
}

static const struct mlk_range ranges[] = {
	{.start = LOADER,
	 .end = LOADER + 0x2000,
	 .perms = MLK_PERM_R | MLK_PERM_W,
	 .path = "/lib64/ld-linux-x86-64.so.2"},
	{.start = STACKS, .end = STACKS + STACK, .perms = MLK_PERM_R | MLK_PERM_W, .path = ""},
	{.start = STACKS + 2 * STACK,
	 .end = STACKS + 3 * STACK,
	 .perms = MLK_PERM_R | MLK_PERM_W,
	 .path = ""},
	{.start = BASE, .end = BASE + 0x200000, .perms = MLK_PERM_R | MLK_PERM_W, .path = ""},
};

/* The number @i of two stacks ends with a descriptor, which is in the list @head alone. */
static uint64_t make_stack(size_t i, uint64_t head, int tid)
{
	const uint64_t descriptor = STACKS + i * 2 * STACK + DESCRIPTOR;

	*word(descriptor) = *word(descriptor + 16) = descriptor;
	*word(descriptor + LINK) = *word(descriptor + LINK + 8) = head;
	*word(head) = *word(head + 8) = descriptor + LINK;
	memcpy(word(descriptor + LINK + 16), &tid, sizeof(tid));
	return descriptor;
}

static uint64_t head_of(size_t i)
{
	return LOADER + 0x800 + i * 16;
}

static int make_memory(void **state)
{
	(void)state;
	memory = calloc(1, SIZE);
	assert_non_null(memory);
	*word(head_of(0)) = *word(head_of(0) + 8) = head_of(0);
	make_stack(0, head_of(1), 47);
	make_stack(1, head_of(2), 0);
	return 0;
}

static int free_memory(void **state)
{
	(void)state;
	free(memory);
	return 0;
}

static struct idle find(void)
{
	const struct idle_memory of = {read_memory, NULL, ranges, sizeof(ranges) / sizeof(*ranges)};
	struct idle idle;

	assert_int_equal(idle_find(&idle, &of), 0);
	return idle;
}

static void assert_area(const struct idle *idle, size_t i, uint64_t start, uint64_t end)
{
	assert_true(i < idle->nr);
	assert_int_equal(idle->v[i].start, start);
	assert_int_equal(idle->v[i].end, end);
}

static void test_a_kept_stack_but_for_two_words(void **state)
{
	const uint64_t start = STACKS + 2 * STACK;
	struct idle idle = find();

	(void)state;
	assert_int_equal(idle.nr, 2);
	assert_area(&idle, 0, start, start + DESCRIPTOR);
	assert_area(&idle, 1, start + DESCRIPTOR + 16, start + STACK);
	idle_release(&idle);
}

static void test_a_joined_one_too(void **state)
{
	struct idle idle;

	(void)state;
	make_stack(1, head_of(2), -1);
	idle = find();
	assert_int_equal(idle.nr, 2);
	idle_release(&idle);
}

static void assert_none(void)
{
	struct idle idle = find();

	assert_int_equal(idle.nr, 0);
	idle_release(&idle);
}

static void test_not_one_whose_thread_has_not_ended(void **state)
{
	(void)state;
	make_stack(1, head_of(2), 53);
	assert_none();
}

static void test_lists_that_do_not_fit(void **state)
{
	const uint64_t descriptor = STACKS + 2 * STACK + DESCRIPTOR;

	(void)state;
	*word(descriptor + LINK + 8) = 8; /* not back to the head */
	assert_none();
	make_stack(1, head_of(2), 0);
	*word(descriptor + 16) = 0; /* no descriptor */
	assert_none();
	make_stack(1, head_of(2), 0);
	*word(head_of(1)) = *word(head_of(1) + 8) = head_of(1); /* no main thread */
	assert_none();
}

static void test_a_list_without_end(void **state)
{
	const uint64_t descriptor = STACKS + 2 * STACK + DESCRIPTOR;
	struct idle idle;

	(void)state;
	*word(descriptor + LINK) = descriptor + LINK;
	idle = find();
	assert_area(&idle, 0, STACKS + 2 * STACK, descriptor);
	idle_release(&idle);
}

/* A block of jemalloc's own memory, of which the last @unused bytes are free. */
static void make_base(uint64_t unused)
{
	*word(BASE) = 0x200000;
	*word(BASE + 24) = BASE + 0x200000 - unused;
	*word(BASE + 32) = unused;
}

/* The thread's cache: @nr bins of ten addresses each, below its descriptor. */
static void make_cache(size_t nr, uint64_t slots)
{
	uint64_t bin = STACKS + DESCRIPTOR - 0x1000;

	for (size_t i = 0; i < nr; i++, bin += 24, slots += 80) {
		const uint16_t bounds[] = {(uint16_t)slots, (uint16_t)slots,
					   (uint16_t)(slots + 80)};

		*word(bin) = slots + i % 11 * 8;
		memcpy(word(bin + 16), bounds, sizeof(bounds));
	}
}

static void test_jemallocs_own(void **state)
{
	const uint64_t slots = BASE + 0x20fff8; /* its low bits overflow on the way */
	struct idle idle;

	(void)state;
	make_base(4096);
	assert_int_equal(idle_jemalloc_base(word(BASE), BASE), 0x200000);
	make_cache(41, slots);
	idle = find();
	assert_int_equal(idle.nr, 3);
	assert_area(&idle, 2, slots, slots + 41ul * 80);
	idle_release(&idle);
}

static void test_what_only_looks_like_jemalloc(void **state)
{
	struct idle idle;

	(void)state;
	make_base(4096);
	*word(BASE + 32) = 4088;
	assert_int_equal(idle_jemalloc_base(word(BASE), BASE), 0);
	make_cache(41, BASE + 0x1000);
	*word(STACKS + DESCRIPTOR - 0x1000 + 20 * 24) += 8 * 11; /* beyond its bounds */
	*word(STACKS + DESCRIPTOR - 0x1000 + 30 * 24) += 8 * 11;
	idle = find();
	assert_int_equal(idle.nr, 2);
	idle_release(&idle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_kept_stack_but_for_two_words, make_memory,
						free_memory),
		cmocka_unit_test_setup_teardown(test_a_joined_one_too, make_memory, free_memory),
		cmocka_unit_test_setup_teardown(test_not_one_whose_thread_has_not_ended,
						make_memory, free_memory),
		cmocka_unit_test_setup_teardown(test_lists_that_do_not_fit, make_memory,
						free_memory),
		cmocka_unit_test_setup_teardown(test_a_list_without_end, make_memory, free_memory),
		cmocka_unit_test_setup_teardown(test_jemallocs_own, make_memory, free_memory),
		cmocka_unit_test_setup_teardown(test_what_only_looks_like_jemalloc, make_memory,
						free_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
