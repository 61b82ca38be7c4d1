/* test_record_given_back.c - ranges that were given back, against an array of pages and the kernel
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/process/given_back.h"

#define PAGE  4096u
#define PAGES 200u

static struct mlk_event event(uint8_t kind, uint8_t func, uint64_t addr, uint64_t size)
{
	return (struct mlk_event){.kind = kind, .func = func, .addr = addr, .size = size};
}

static void give(struct given_back *g, uint64_t addr, uint64_t size)
{
	const struct mlk_event e = event(MLK_PAGES, MLK_PAGES_GIVEN_BACK, addr, size);

	given_back_note(g, &e);
}

static uint32_t below(unsigned int *seed, uint32_t n)
{
	return (uint32_t)rand_r(seed) % n;
}

/* Each page is in a range if it is set in @there, and ranges are apart and ascend. */
static void compare(const struct given_back *g, const bool *there, uint64_t base)
{
	uint64_t pages = 0, set = 0;

	for (size_t i = 0; i < g->nr; i++) {
		assert_true(g->v[i].start < g->v[i].end &&
			    (!i || g->v[i - 1].end <= g->v[i].start));
		for (uint64_t at = g->v[i].start; at < g->v[i].end; at += PAGE, pages++)
			assert_true(there[(at - base) / PAGE]);
	}
	for (uint32_t i = 0; i < PAGES; i++)
		set += there[i];
	assert_int_equal(pages, set);
}

static void it_agrees_with_an_array_of_pages(void **state)
{
	static const struct {
		uint8_t kind, func;
	} what[] = {{MLK_PAGES, MLK_PAGES_GIVEN_BACK},
		    {MLK_PAGES, MLK_PAGES_GIVEN_BACK},
		    {MLK_UNMAP, 0},
		    {MLK_ALLOC, MLK_FUNC_MMAP},
		    {MLK_PAGES, MLK_PAGES_LAZILY},
		    {MLK_PAGES, MLK_PAGES_ACCESSIBLE}};
	unsigned int seed = 47;

	(void)state;
	for (int round = 0; round < 50; round++) {
		struct given_back g = {0};
		bool there[PAGES] = {0};

		for (int i = 0; i < 400; i++) {
			uint32_t w = below(&seed, 6), page = below(&seed, PAGES - 20);
			uint32_t nr = 1 + below(&seed, 20);
			const struct mlk_event e =
				event(what[w].kind, what[w].func, (uint64_t)page * PAGE,
				      (uint64_t)nr * PAGE - below(&seed, PAGE));

			given_back_note(&g, &e);
			for (uint32_t p = page; w < 5 && p < page + nr; p++)
				there[p] = w < 2;
			compare(&g, there, 0);
		}
		assert_int_equal(g.left_out, 0);
		given_back_release(&g);
	}
}

static void another_program_has_given_nothing_back(void **state)
{
	const struct mlk_event exec = event(MLK_EXEC, 0, 0, 0);
	struct given_back g = {0};

	(void)state;
	give(&g, 0x10000, 0x1000);
	give(&g, UINT64_MAX - 5, 3); /* no addresses of a program's: no harm */
	given_back_note(&g, &exec);
	assert_int_equal(g.nr, 0);
	given_back_release(&g);
}

static void what_there_is_no_room_for_is_counted(void **state)
{
	struct given_back g = {0};
	uint64_t nr = 0;

	(void)state;
	for (uint64_t i = 0; i < 10000; i++)
		give(&g, i * 2 * PAGE, PAGE);
	for (size_t i = 0; i < g.nr; i++)
		nr += (g.v[i].end - g.v[i].start) / PAGE;
	assert_int_equal(nr + g.left_out, 10000);
	assert_true(g.left_out > 0 && nr > 1000);
	given_back_release(&g);
}

/* What was found, page by page. */
struct found {
	const char *base;
	bool used[PAGES];
	unsigned int calls;
};

static void find(void *arg, uint64_t addr, uint64_t size)
{
	struct found *found = arg;

	found->calls++;
	for (uint64_t at = addr; at < addr + size; at += PAGE) {
		uint64_t page = (at - (uint64_t)found->base) / PAGE;

		assert_false(found->used[page]); /* each page once */
		found->used[page] = true;
	}
}

/* Pages of this process, of which every third is used again, @most at each look. */
static void look_at_own(uint64_t most)
{
	struct target t = {.pid = getpid(), .task = getpid(), .pidfd = -1};
	char *base = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	struct found found = {.base = base};
	struct given_back g = {0};
	unsigned int looks = 0;

	assert_ptr_not_equal(base, MAP_FAILED);
	madvise(base, PAGES * PAGE, MADV_NOHUGEPAGE);
	give(&g, (uint64_t)base, 50 * PAGE);
	give(&g, (uint64_t)base + 60 * PAGE, (PAGES - 60) * PAGE);
	for (uint32_t i = 0; i < PAGES; i += 3)
		base[i * PAGE] = 1;
	for (; looks * most < 4 * PAGES; looks++)
		given_back_look(&g, &t, most, find, &found);
	for (uint32_t i = 0; i < PAGES; i++)
		assert_int_equal(found.used[i], i % 3 == 0 && (i < 50 || i >= 60));
	found.calls = 0;
	base[1 * PAGE] = 1;
	assert_true(given_back_look(&g, &t, 2 * PAGES, find, &found));
	assert_int_equal(found.calls, 1);
	assert_true(found.used[1]);
	given_back_release(&g);
	munmap(base, PAGES * PAGE);
}

static void what_is_used_again_is_found(void **state)
{
	(void)state;
	look_at_own(4 * PAGES);
	look_at_own(PAGES);
	look_at_own(7);
	look_at_own(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_agrees_with_an_array_of_pages),
		cmocka_unit_test(another_program_has_given_nothing_back),
		cmocka_unit_test(what_there_is_no_room_for_is_counted),
		cmocka_unit_test(what_is_used_again_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
