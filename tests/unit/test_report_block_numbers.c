/* test_report_block_numbers.c - numbers in place of addresses mean the same to the replay: random
 * events, among them many that contradict each other, are replayed with both */
#include "report_live_world.h"

#include "format/summary.h"
#include "report/dropped/block_numbers.h"

#define NR_ROUNDS 400
#define NR_EVENTS 500

/* A generator of its own, so that a failure comes again. */
static uint32_t random_below(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % n;
}

/* By process and thread: the address that it reallocates; 0: none. */
static uint64_t reallocated[3][3];

/* Would @event free a block in the middle of its realloc? */
static bool is_misuse(const struct mlk_event *event)
{
	bool found = false;

	for (int i = 0; i < 3; i++)
		found |= reallocated[event->tgid - TGID][i] == event->addr;
	return found && (event->kind == MLK_FREE || event->kind == MLK_RELEASE);
}

/* The realloc of its thread is over, or begins. */
static void note_realloc(const struct mlk_event *event)
{
	uint64_t *at = &reallocated[event->tgid - TGID][(event->tid - event->tgid) / 10];

	if (event->kind == MLK_EXEC || event->kind == MLK_EXIT || event->kind == MLK_FORK)
		memset(reallocated[event->tgid - TGID], 0, sizeof(reallocated[0]));
	else if (event->kind == MLK_RELEASE)
		*at = event->addr;
	else if (!(event->flags & MLK_EVENT_NESTED))
		*at = 0;
}

/* Few addresses, threads and processes: so events meet. */
static struct mlk_event random_event(uint64_t *state, uint32_t nr)
{
	static const uint8_t kinds[] = {MLK_ALLOC, MLK_ALLOC, MLK_ALLOC,   MLK_ALLOC,  MLK_ALLOC,
					MLK_FREE,  MLK_FREE,  MLK_FREE,	   MLK_FREE,   MLK_RELEASE,
					MLK_ALLOC, MLK_FREE,  MLK_RELEASE, MLK_RESTORE};
	struct mlk_event event = {.tgid = TGID + random_below(state, 3), .time_ns = nr};
	uint32_t seldom = random_below(state, 150);

	event.kind = kinds[random_below(state, sizeof(kinds))];
	event.tid = event.tgid + 10 * random_below(state, 3);
	event.addr = 0x1000 + 16 * random_below(state, 12);
	if (seldom < 3)
		event.kind = (uint8_t[]){MLK_EXEC, MLK_FORK, MLK_EXIT}[seldom];
	else if (seldom == 4)
		event.kind = MLK_UNMAP;
	if (event.kind == MLK_FORK)
		event.addr = TGID + random_below(state, 3);
	if (event.kind == MLK_UNMAP)
		event.size = 4096;
	if (event.kind == MLK_FREE && !random_below(state, 5))
		event.flags = MLK_EVENT_NESTED;
	if (event.kind != MLK_ALLOC)
		return event;
	event.alloc_id = nr;
	event.func = random_below(state, 20) ? MLK_FUNC_MALLOC : MLK_FUNC_MMAP;
	event.size = 47 + random_below(state, 5);
	event.regs[MLK_ORIGIN_REG] = 0;
	return event;
}

static void check_same_totals(const struct live_totals *a, const struct live_totals *b)
{
	check_amount(a->allocated, b->allocated.blocks, b->allocated.bytes);
	check_amount(a->freed, b->freed.blocks, b->freed.bytes);
	check_amount(a->outstanding, b->outstanding.blocks, b->outstanding.bytes);
	check_amount(a->implied, b->implied.blocks, b->implied.bytes);
	check_amount(a->gone, b->gone.blocks, b->gone.bytes);
	check_amount(a->older, b->older.blocks, b->older.bytes);
	assert_int_equal(a->unknown_frees, b->unknown_frees);
	assert_int_equal(a->inherited_frees, b->inherited_frees);
}

/* Returns how many ALLOCs got a number. */
static size_t replay_both(uint64_t seed)
{
	struct live *real = start(), *numbered = start();
	struct block_numbers *numbers;
	uint64_t state = seed;
	size_t nr = 0;

	memset(reallocated, 0, sizeof(reallocated));
	assert_int_equal(block_numbers_new(&numbers), 0);
	for (uint32_t i = 1; i <= NR_EVENTS; i++) {
		struct mlk_event event = random_event(&state, i);
		uint32_t stack = random_below(&state, 3);

		if (is_misuse(&event))
			continue;
		note_realloc(&event);
		assert_int_equal(live_event(real, &event, stack), 0);
		assert_int_equal(block_numbers_apply(numbers, &event, stack), 0);
		nr += event.kind == MLK_ALLOC && event.addr & MLK_NUMBER_FLAG;
		assert_int_equal(live_event(numbered, &event, stack), 0);
		check_same_totals(live_totals(numbered), live_totals(real));
	}
	live_finish(real);
	live_finish(numbered);
	check_same_totals(live_totals(numbered), live_totals(real));
	check_sums(numbered);
	live_free(real);
	live_free(numbered);
	block_numbers_free(numbers);
	return nr;
}

static void the_replay_is_the_same(void **state)
{
	size_t nr = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= NR_ROUNDS; seed++)
		nr += replay_both(seed);
	assert_true(nr > (size_t)NR_ROUNDS * NR_EVENTS / 10);
}

/* A number is used again once its block is freed, and blocks that live have different ones. */
static void numbers_are_small(void **state)
{
	struct mlk_event event = {.kind = MLK_ALLOC, .tgid = 1, .tid = 1, .size = 47};
	struct block_numbers *numbers;
	uint64_t first;

	(void)state;
	event.func = MLK_FUNC_MALLOC;
	assert_int_equal(block_numbers_new(&numbers), 0);
	event.addr = 0x1000;
	assert_int_equal(block_numbers_apply(numbers, &event, 7), 0);
	first = event.addr;
	assert_true(first & MLK_NUMBER_FLAG);
	event.addr = 0x2000;
	assert_int_equal(block_numbers_apply(numbers, &event, 7), 0);
	assert_true(event.addr == first + 1);
	event.addr = 0x3000;
	assert_int_equal(block_numbers_apply(numbers, &event, 8), 0);
	assert_true(event.addr >> MLK_PLACE_BITS != first >> MLK_PLACE_BITS);
	event.kind = MLK_FREE;
	event.addr = 0x1000;
	assert_int_equal(block_numbers_apply(numbers, &event, 0), 0);
	assert_true(event.addr == first);
	event.kind = MLK_ALLOC;
	event.addr = 0x4000;
	assert_int_equal(block_numbers_apply(numbers, &event, 7), 0);
	assert_true(event.addr == first);
	block_numbers_free(numbers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_replay_is_the_same),
		cmocka_unit_test(numbers_are_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
