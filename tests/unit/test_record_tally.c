/* test_record_tally.c - the recorder counts blocks as the report does, which knows each of them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "record/trace/tally.h"
#include "report/live/live.h"

#define PAGE 4096u

struct both {
	struct tally tally;
	struct live *live;
};

static struct both begin(void)
{
	struct both b = {.live = NULL};

	assert_int_equal(live_new(&b.live), 0);
	return b;
}

static void send(struct both *b, const struct mlk_event *event)
{
	assert_int_equal(tally_note(&b->tally, event), 0);
	assert_int_equal(live_event(b->live, event, 0), 0);
}

/* Both have counted so many; the report shows the frees apart that are of blocks not in the trace.
 */
static void assert_counts(struct both *b)
{
	const struct live_totals *totals;

	live_finish(b->live);
	totals = live_totals(b->live);
	assert_int_equal(b->tally.allocs, totals->allocated.blocks);
	assert_int_equal(b->tally.frees,
			 totals->freed.blocks + totals->unknown_frees + totals->inherited_frees);
}

static void end(struct both *b)
{
	tally_release(&b->tally);
	live_free(b->live);
}

static void a_realloc_that_fails_frees_nothing(void **state)
{
	struct both b = begin();

	(void)state;
	send(&b, &(struct mlk_event){.kind = MLK_ALLOC, .tgid = 1, .tid = 1, .addr = 16});
	send(&b, &(struct mlk_event){.kind = MLK_RELEASE, .tgid = 1, .tid = 1, .addr = 16});
	send(&b, &(struct mlk_event){.kind = MLK_RESTORE, .tgid = 1, .tid = 1, .addr = 16});
	assert_int_equal(b.tally.frees, 0);
	send(&b, &(struct mlk_event){.kind = MLK_RESTORE, .tgid = 1, .tid = 1, .addr = 16});
	assert_int_equal(b.tally.frees, 0);
	assert_counts(&b);
	end(&b);
}

static void a_block_that_is_unmapped_in_two_pieces_is_one_free(void **state)
{
	struct both b = begin();

	(void)state;
	send(&b, &(struct mlk_event){.kind = MLK_ALLOC,
				     .func = MLK_FUNC_MMAP,
				     .tgid = 1,
				     .tid = 1,
				     .addr = PAGE,
				     .size = 4 * PAGE});
	for (unsigned int i = 0; i < 2; i++)
		send(&b, &(struct mlk_event){.kind = MLK_UNMAP,
					     .tgid = 1,
					     .tid = 1,
					     .addr = PAGE + 2 * i * PAGE,
					     .size = 2 * PAGE});
	assert_int_equal(b.tally.allocs, 1);
	assert_int_equal(b.tally.frees, 1);
	assert_counts(&b);
	end(&b);
}

static unsigned int below(unsigned int *seed, unsigned int n)
{
	return (unsigned int)rand_r(seed) % n;
}

/* Mappings and blocks of the heap, each in an area of their own.  No free is nested in another
 * call: whether such a one is the only one of its block the report alone can tell. */
static struct mlk_event random_event(unsigned int *seed, uint64_t time_ns)
{
	static const uint8_t kinds[] = {MLK_ALLOC,   MLK_ALLOC,	  MLK_FREE,    MLK_RELEASE,
					MLK_RELEASE, MLK_RESTORE, MLK_RESTORE, MLK_UNMAP,
					MLK_PAGES,   MLK_PAGES};
	struct mlk_event event = {
		.kind = kinds[below(seed, sizeof(kinds))],
		.tgid = 1 + below(seed, 3),
		.tid = 1 + below(seed, 4),
		.addr = 16 + below(seed, 9) * 16,
		.time_ns = time_ns,
	};

	if (event.kind == MLK_UNMAP || event.kind == MLK_PAGES ||
	    (event.kind == MLK_ALLOC && below(seed, 2))) {
		event.addr = (1 + below(seed, 20)) * PAGE;
		event.size = 1 + below(seed, 9 * PAGE);
		event.func = below(seed, 2) ? MLK_FUNC_MMAP : MLK_FUNC_MREMAP;
		event.flags = event.kind == MLK_ALLOC && below(seed, 2) ? MLK_EVENT_RESERVED : 0;
	}
	if (event.kind == MLK_PAGES)
		event.func = (uint8_t)(1 + below(seed, MLK_PAGES_NR));
	if (below(seed, 300) == 0)
		event.kind = below(seed, 2) ? MLK_EXEC : MLK_EXIT;
	return event;
}

static void send_random(struct both *b, unsigned int *seed, uint64_t time_ns)
{
	struct mlk_event event = random_event(seed, time_ns);
	struct mlk_event fork = {
		.kind = MLK_FORK, .tgid = event.tgid, .tid = event.tgid, .addr = 99};
	struct mlk_event restore = {
		.kind = MLK_RESTORE, .tgid = event.tgid, .tid = event.tid, .addr = event.addr};

	send(b, &event);
	if (event.kind == MLK_EXIT && below(seed, 2)) /* another gets its number */
		send(b, &fork);
	/* While mremap fails nothing else is mapped there. */
	if (event.kind == MLK_UNMAP && below(seed, 2))
		send(b, &restore);
}

static void it_agrees_with_the_report(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 100; round++) {
		unsigned int seed = round + 1;
		struct both b = begin();

		for (unsigned int i = 0; i < 1 + round * 20; i++)
			send_random(&b, &seed, i + 1);
		assert_counts(&b);
		end(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_realloc_that_fails_frees_nothing),
		cmocka_unit_test(a_block_that_is_unmapped_in_two_pieces_is_one_free),
		cmocka_unit_test(it_agrees_with_the_report),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
