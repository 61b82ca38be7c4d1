/* test_report_live_pages.c - what mappings need, against the same rules said for each page */
#include "tests/unit/report_live_world.h"

#define PAGE	   0x1000u
#define FIRST	   0x10000u
#define PAGES	   48u
#define NR_ADDRESS 2u /* processes */

static void map(struct live *live, uint64_t time_ns, uint64_t pages, uint32_t flags)
{
	send(live, (struct mlk_event){.kind = MLK_ALLOC,
				      .func = MLK_FUNC_MMAP,
				      .tid = 1,
				      .flags = flags,
				      .time_ns = time_ns,
				      .addr = FIRST,
				      .size = pages * PAGE});
}

/* @what is done to so many pages from page @first on. */
static void pages(struct live *live, enum mlk_pages what, uint64_t first, uint64_t nr)
{
	send(live, (struct mlk_event){.kind = MLK_PAGES,
				      .func = (uint8_t)what,
				      .tid = 1,
				      .addr = FIRST + first * PAGE,
				      .size = nr * PAGE});
}

static void unmap(struct live *live, uint64_t first, uint64_t nr)
{
	send(live,
	     (struct mlk_event){
		     .kind = MLK_UNMAP, .tid = 1, .addr = FIRST + first * PAGE, .size = nr * PAGE});
}

static void what_is_reserved_is_outstanding_once_it_is_accessible(void **state)
{
	struct live *live = start();
	const struct live_totals *totals = live_totals(live);

	(void)state;
	map(live, 1, 40, MLK_EVENT_RESERVED);
	check_amount(totals->allocated, 0, 0);
	check_amount(totals->outstanding, 0, 0);
	check_amount(totals->reserved, 1, 40 * PAGE);
	pages(live, MLK_PAGES_ACCESSIBLE, 0, 3);
	pages(live, MLK_PAGES_ACCESSIBLE, 3, 4); /* the heap grows: it is one block */
	check_amount(totals->allocated, 1, 7 * PAGE);
	check_amount(totals->outstanding, 1, 7 * PAGE);
	check_amount(totals->reserved, 1, 33 * PAGE);
	pages(live, MLK_PAGES_ACCESSIBLE, 0, 7); /* it was so before */
	check_amount(totals->outstanding, 1, 7 * PAGE);
	unmap(live, 0, 40);
	check_amount(totals->reserved, 0, 0);
	check_amount(finish(live, 0, 1, 0)->freed, 1, 7 * PAGE);
	live_free(live);
}

static void what_is_given_back_is_freed_until_it_is_used_again(void **state)
{
	struct live *live = start();
	const struct live_totals *totals = live_totals(live);

	(void)state;
	map(live, 1, 10, 0);
	pages(live, MLK_PAGES_GIVEN_BACK, 2, 3);
	check_amount(totals->outstanding, 2, 7 * PAGE);
	check_amount(totals->freed, 0, 3 * PAGE);
	check_amount(totals->given_back, 1, 3 * PAGE);
	pages(live, MLK_PAGES_GIVEN_BACK, 2, 3); /* there is nothing left to give */
	pages(live, MLK_PAGES_ACCESSIBLE, 2, 3); /* which gives them no memory */
	check_amount(totals->given_back, 1, 3 * PAGE);
	pages(live, MLK_PAGES_RESIDENT, 0, 3);
	check_amount(totals->outstanding, 2, 8 * PAGE);
	pages(live, MLK_PAGES_RESIDENT, 3, 2); /* all of it: one block again */
	check_amount(totals->outstanding, 1, 10 * PAGE);
	check_amount(totals->given_back, 0, 0);
	pages(live, MLK_PAGES_LAZILY, 0, 100);
	check_amount(totals->outstanding, 0, 0);
	check_amount(finish(live, 0, 2, 0)->freed, 2, 13 * PAGE);
	check_amount(totals->given_back, 1, 10 * PAGE);
	live_free(live);
}

static void it_does_not_end_a_realloc(void **state)
{
	struct live *live = start();

	(void)state;
	alloc(live, 1, 0x1000, 47);
	other(live, MLK_RELEASE, 1, 0x1000);
	pages(live, MLK_PAGES_RESIDENT, 0, 1);
	other(live, MLK_RESTORE, 1, 0x1000);
	check_amount(finish(live, 1, 0, 0)->outstanding, 1, 47);
	live_free(live);
}

static void an_mremap_that_failed_gives_back_what_was_reserved(void **state)
{
	struct live *live = start();

	(void)state;
	map(live, 1, 10, MLK_EVENT_RESERVED);
	pages(live, MLK_PAGES_ACCESSIBLE, 4, 2);
	unmap(live, 0, 10);
	check_amount(live_totals(live)->reserved, 0, 0);
	other(live, MLK_RESTORE, 1, FIRST);
	check_amount(live_totals(live)->reserved, 2, 8 * PAGE);
	check_amount(finish(live, 1, 0, 0)->outstanding, 1, 2 * PAGE);
	live_free(live);
}

static void visit(void *arg, const struct live_block *block)
{
	*(uint64_t *)arg += block->size;
}

static void only_what_is_in_use_is_listed(void **state)
{
	struct live *live = start();
	uint64_t bytes = 0;

	(void)state;
	map(live, 1, 10, MLK_EVENT_RESERVED);
	pages(live, MLK_PAGES_ACCESSIBLE, 2, 5);
	pages(live, MLK_PAGES_GIVEN_BACK, 3, 1);
	live_each(live, visit, &bytes);
	assert_int_equal(bytes, 4 * PAGE);
	live_free(live);
}

/* The rules for each page alone. */
struct page {
	uint64_t map; /* time of its mapping; 0: none */
	enum live_use use;
};

struct model {
	struct page pages[NR_ADDRESS][PAGES];
	uint64_t allocated, freed, implied, gone; /* pages */
};

static void model_page(struct model *m, struct page *p, const struct mlk_event *e)
{
	bool in_use = p->map && p->use == LIVE_IN_USE;

	if (e->kind == MLK_ALLOC) {
		m->implied += in_use;
		p->map = e->time_ns;
		p->use = e->flags & MLK_EVENT_RESERVED ? LIVE_RESERVED : LIVE_IN_USE;
		m->allocated += p->use == LIVE_IN_USE;
	} else if (e->kind == MLK_UNMAP) {
		m->freed += in_use;
		p->map = 0;
	} else if (e->kind == MLK_EXEC) {
		m->gone += in_use;
		p->map = 0;
	} else if (!p->map) {
		return;
	} else if (in_use && (e->func == MLK_PAGES_GIVEN_BACK || e->func == MLK_PAGES_LAZILY)) {
		m->freed++;
		p->use = LIVE_GIVEN_BACK;
	} else if ((e->func == MLK_PAGES_ACCESSIBLE && p->use == LIVE_RESERVED) ||
		   (e->func == MLK_PAGES_RESIDENT && p->use == LIVE_GIVEN_BACK)) {
		m->allocated++;
		p->use = LIVE_IN_USE;
	}
}

static void model_event(struct model *m, const struct mlk_event *e)
{
	for (uint32_t i = 0; i < PAGES; i++)
		if (e->kind == MLK_EXEC || (FIRST + (uint64_t)i * PAGE) - e->addr < e->size)
			model_page(m, &m->pages[e->tgid - 1][i], e);
}

/* What is in @use: a run of pages of one mapping is a block. */
static struct live_amount model_sum(const struct model *m, enum live_use use)
{
	struct live_amount sum = {0, 0};

	for (uint32_t i = 0; i < NR_ADDRESS * PAGES; i++) {
		const struct page *p = &m->pages[i / PAGES][i % PAGES];

		if (!p->map || p->use != use)
			continue;
		sum.bytes += PAGE;
		sum.blocks += i % PAGES == 0 || p[-1].map != p->map || p[-1].use != use;
	}
	return sum;
}

static void compare(const struct live *live, const struct model *m)
{
	const struct live_totals *totals = live_totals(live);
	struct live_amount in_use = model_sum(m, LIVE_IN_USE);
	struct live_amount reserved = model_sum(m, LIVE_RESERVED);
	struct live_amount given_back = model_sum(m, LIVE_GIVEN_BACK);

	check_amount(totals->outstanding, in_use.blocks, in_use.bytes);
	check_amount(totals->reserved, reserved.blocks, reserved.bytes);
	check_amount(totals->given_back, given_back.blocks, given_back.bytes);
	assert_int_equal(totals->allocated.bytes, m->allocated * PAGE);
	assert_int_equal(totals->implied.bytes, m->implied * PAGE);
	assert_int_equal(totals->gone.bytes, m->gone * PAGE);
}

static uint32_t below(unsigned int *seed, uint32_t n)
{
	return (uint32_t)rand_r(seed) % n;
}

static struct mlk_event random_event(unsigned int *seed, uint64_t nr)
{
	static const uint8_t kinds[] = {MLK_ALLOC, MLK_UNMAP, MLK_PAGES, MLK_PAGES, MLK_PAGES};
	struct mlk_event event = {.kind = kinds[below(seed, 5)],
				  .tgid = 1 + below(seed, NR_ADDRESS),
				  .tid = 7,
				  .time_ns = nr,
				  .addr = FIRST + below(seed, PAGES) * PAGE};
	uint64_t most = (FIRST + PAGES * PAGE - event.addr) / PAGE;

	if (below(seed, 400) == 0)
		event.kind = MLK_EXEC;
	else
		event.size = (1 + below(seed, (uint32_t)(most < 12 ? most : 12))) * PAGE;
	if (event.kind == MLK_PAGES) {
		event.func = (uint8_t)(1 + below(seed, MLK_PAGES_NR));
		event.size -= below(seed, PAGE); /* the kernel rounds up */
		event.tid = below(seed, 2) ? 7 : 8;
	} else if (event.kind == MLK_ALLOC) {
		event.func = below(seed, 8) ? MLK_FUNC_MMAP : MLK_FUNC_MREMAP;
		event.flags = below(seed, 2) ? MLK_EVENT_RESERVED : 0;
	}
	return event;
}

static void it_agrees_with_a_model_of_pages(void **state)
{
	struct model *m = malloc(sizeof(*m));

	(void)state;
	assert_non_null(m);
	for (unsigned int round = 0; round < 40; round++) {
		unsigned int seed = round + 1;
		struct live *live = start();

		memset(m, 0, sizeof(*m));
		for (uint64_t i = 1; i <= 3000; i++) {
			struct mlk_event event = random_event(&seed, i);

			assert_int_equal(live_event(live, &event, 0), 0);
			model_event(m, &event);
			compare(live, m);
		}
		live_finish(live);
		check_sums(live);
		assert_int_equal(live_totals(live)->freed.bytes, m->freed * PAGE);
		live_free(live);
	}
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_reserved_is_outstanding_once_it_is_accessible),
		cmocka_unit_test(what_is_given_back_is_freed_until_it_is_used_again),
		cmocka_unit_test(it_does_not_end_a_realloc),
		cmocka_unit_test(an_mremap_that_failed_gives_back_what_was_reserved),
		cmocka_unit_test(only_what_is_in_use_is_listed),
		cmocka_unit_test(it_agrees_with_a_model_of_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
