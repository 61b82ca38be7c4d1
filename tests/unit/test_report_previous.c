/* test_report_previous.c - a cut stack gets what lay above it before, marked as older */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/decode/stack_history.h"

enum { WHOLE = 0, ROOM = 2 * MLK_MAX_STACK };

/* The memory of the thread: byte i stands at BASE + i. */
#define BASE 0x7fff00000000ull
static uint8_t memory[ROOM];

static struct mlk_event event_of(size_t from, size_t to, uint32_t flags)
{
	struct mlk_event e = {.kind = MLK_ALLOC,
			      .tgid = 42,
			      .tid = 43,
			      .flags = flags,
			      .nr_regs = 17,
			      .stack = memory + from,
			      .stack_len = (uint32_t)(to - from),
			      .stack_same_from = UINT64_MAX};

	e.regs[MLK_SP_REG] = BASE + from;
	return e;
}

static struct dwunw_stack none;

/* Take a stack of which nothing more is known. */
static void take(struct stack_history *p, const struct mlk_event *e)
{
	uint64_t stale_from;

	assert_false(stack_history_pop(p, e, &none, &stale_from));
}

/* Take a cut one, and compare what it is with [from, to) of @expected, older from @stale on. */
static void take_longer(struct stack_history *p, const struct mlk_event *e, const uint8_t *expected,
			size_t to, size_t stale)
{
	size_t from = (size_t)(e->regs[MLK_SP_REG] - BASE);
	struct dwunw_stack stack;
	uint64_t stale_from;

	assert_true(stack_history_pop(p, e, &stack, &stale_from));
	assert_int_equal(stack.addr, BASE + from);
	assert_int_equal(stack.len, to - from);
	assert_memory_equal(stack.bytes, expected + from, to - from);
	assert_int_equal(stale_from, BASE + stale);
}

static void fill(uint8_t with)
{
	for (size_t i = 0; i < ROOM; i++)
		memory[i] = (uint8_t)(with + i * 7);
}

/* A history in which the thread's last stack is whole, [1000, 9000) of what fill(1) left. */
static struct stack_history *history_of_one(void)
{
	struct stack_history *p;
	struct mlk_event e = event_of(1000, 9000, WHOLE);

	assert_int_equal(stack_history_new(&p, NULL, NULL), 0);
	fill(1);
	take(p, &e);
	return p;
}

static void a_cut_stack_is_continued_by_the_thread_s_last_one(void **state)
{
	static uint8_t mixed[ROOM];
	struct stack_history *p = history_of_one();
	struct mlk_event e;

	(void)state;
	memcpy(mixed, memory, ROOM);
	fill(2);
	memcpy(mixed + 1100, memory + 1100, 128);
	e = event_of(1100, 1228, DWUNW_EVENT_STACK_DEGRADED);
	take_longer(p, &e, mixed, 9000, 1228);
	/* deeper, so that all between is new */
	fill(3);
	memcpy(mixed + 400, memory + 400, 700);
	memcpy(memory + 1100, mixed + 1100, 500);
	e = event_of(400, 1600, DWUNW_EVENT_STACK_LIMIT);
	take_longer(p, &e, mixed, 9000, 1600);
	/* as high as the bytes at hand reach: it touches */
	fill(4);
	memcpy(mixed + 200, memory + 200, 200);
	e = event_of(200, 400, DWUNW_EVENT_STACK_LIMIT);
	take_longer(p, &e, mixed, 9000, 400);
	stack_history_free(p);
}

static void a_gap_another_thread_or_an_exec_is_not_bridged(void **state)
{
	struct stack_history *p = history_of_one();
	struct mlk_event e;

	(void)state;
	e = event_of(1100, 1228, DWUNW_EVENT_STACK_DEGRADED);
	e.tid = 44;
	take(p, &e);
	e.tid = 43;
	e.tgid = 41;
	take(p, &e);
	e = event_of(800, 900, DWUNW_EVENT_STACK_DEGRADED); /* 100 bytes are missing */
	take(p, &e);
	e = event_of(1000, 9000, WHOLE);
	take(p, &e);
	stack_history_forget(p, 42);
	e = event_of(1100, 1228, DWUNW_EVENT_STACK_DEGRADED);
	take(p, &e);
	stack_history_free(p);
}

/* A whole stack never gets more, and of one with the same end only what changed is copied. */
static void what_is_told_to_be_the_same_is_kept(void **state)
{
	static uint8_t mixed[ROOM];
	struct stack_history *p = history_of_one();
	struct mlk_event e;

	(void)state;
	memcpy(mixed, memory, ROOM);
	fill(2);
	memcpy(mixed + 1200, memory + 1200, 100);
	e = event_of(1200, 9000, WHOLE);
	e.stack_same_from = BASE + 1300; /* the writer's word: above nothing is looked at */
	take(p, &e);
	fill(3);
	memcpy(memory + 1210, mixed + 1210, 10);
	e = event_of(1210, 1220, DWUNW_EVENT_STACK_LIMIT);
	take_longer(p, &e, mixed, 9000, 1220);
	stack_history_free(p);
}

/* The thread has returned since, and is in other calls at the same addresses. */
static void other_calls_are_not_continued(void **state)
{
	static uint8_t mixed[ROOM];
	struct stack_history *p = history_of_one();
	struct mlk_event e = event_of(1000, 90000, WHOLE);

	(void)state;
	take(p, &e);
	/* what the innermost calls have differs */
	memset(memory + 1000, 0x55, 1000);
	memcpy(mixed, memory, ROOM);
	e = event_of(1000, 50000, DWUNW_EVENT_STACK_LIMIT);
	take_longer(p, &e, mixed, 90000, 50000);
	/* more than 32 words are not compared, but those that are 0 do not count */
	memset(memory + 20000, 0x66, 1000);
	memcpy(mixed, memory, ROOM);
	take_longer(p, &e, mixed, 90000, 50000);
	memset(memory + 30000, 0, 20000);
	e = event_of(1000, 90000, WHOLE);
	take(p, &e);
	memset(memory + 29992, 0x77, 8);
	e = event_of(1000, 50000, DWUNW_EVENT_STACK_LIMIT);
	take(p, &e);
	/* the uppermost word differs */
	e = event_of(1000, 90000, WHOLE);
	take(p, &e);
	memory[49999] ^= 1;
	e = event_of(1000, 50000, DWUNW_EVENT_STACK_LIMIT);
	take(p, &e);
	e = event_of(900, 4000, DWUNW_EVENT_STACK_LIMIT);
	take_longer(p, &e, memory, 50000, 4000); /* what lay above is forgotten */
	stack_history_free(p);
}

static void stacks_grow_to_twice_the_most_that_an_event_has(void **state)
{
	struct stack_history *p;
	struct mlk_event e;

	(void)state;
	assert_int_equal(stack_history_new(&p, NULL, NULL), 0);
	fill(1);
	e = event_of(MLK_MAX_STACK, 2 * MLK_MAX_STACK, DWUNW_EVENT_STACK_LIMIT);
	take(p, &e);
	e = event_of(0, MLK_MAX_STACK, DWUNW_EVENT_STACK_LIMIT);
	take_longer(p, &e, memory, 2 * MLK_MAX_STACK, MLK_MAX_STACK);
	stack_history_free(p);
}

/* What the chunks before left, and how often it was asked for. */
struct chunks {
	struct stack_history *before, *chunk;
	int asked;
};

static void look_back(void *arg, struct stack_history *to, const struct mlk_event *event)
{
	struct chunks *chunks = arg;

	chunks->asked++;
	stack_history_copy(to, chunks->before, event);
}

static struct chunks two_chunks(void)
{
	struct chunks chunks = {0};
	struct mlk_event e;

	assert_int_equal(stack_history_new(&chunks.before, NULL, NULL), 0);
	assert_int_equal(stack_history_new(&chunks.chunk, NULL, NULL), 0);
	fill(1);
	e = event_of(1000, 9000, WHOLE);
	take(chunks.chunk, &e);
	stack_history_absorb(chunks.before, chunks.chunk);
	stack_history_free(chunks.chunk);
	return chunks;
}

static void free_chunks(struct chunks *chunks)
{
	stack_history_free(chunks->before);
	stack_history_free(chunks->chunk);
}

static void what_a_chunk_leaves_is_there_in_those_behind_it(void **state)
{
	static uint8_t mixed[ROOM];
	struct chunks chunks = two_chunks();
	struct mlk_event e;

	(void)state;
	assert_int_equal(stack_history_new(&chunks.chunk, look_back, &chunks), 0);
	for (int round = 0; round < 2; round++) {
		memcpy(mixed, memory, ROOM);
		fill(2 + round);
		memcpy(mixed + 1100, memory + 1100, 128);
		memcpy(memory, mixed, ROOM);
		e = event_of(1100, 1228, DWUNW_EVENT_STACK_DEGRADED);
		take_longer(chunks.chunk, &e, mixed, 9000, 1228);
		e = event_of(1150, 1228, DWUNW_EVENT_STACK_DEGRADED);
		take_longer(chunks.chunk, &e, mixed, 9000, 1228);
		assert_int_equal(chunks.asked, round + 1);
		stack_history_absorb(chunks.before, chunks.chunk);
	}
	/* a whole one needs nothing of those before */
	e = event_of(1000, 9000, WHOLE);
	take(chunks.chunk, &e);
	assert_int_equal(chunks.asked, 2);
	free_chunks(&chunks);
}

static void what_a_chunk_forgets_is_not_there_any_more(void **state)
{
	struct chunks chunks = two_chunks();
	struct mlk_event e;

	(void)state;
	assert_int_equal(stack_history_new(&chunks.chunk, look_back, &chunks), 0);
	stack_history_forget(chunks.chunk, 42);
	e = event_of(1100, 1228, DWUNW_EVENT_STACK_DEGRADED);
	take(chunks.chunk, &e);
	assert_int_equal(chunks.asked, 0);
	stack_history_absorb(chunks.before, chunks.chunk);
	e = event_of(1110, 1200, DWUNW_EVENT_STACK_DEGRADED);
	take_longer(chunks.before, &e, memory, 1228, 1200); /* all there is now */
	free_chunks(&chunks);
}

static void a_thread_that_only_forgets_is_forgotten_behind_the_chunk_too(void **state)
{
	struct chunks chunks = two_chunks();
	struct mlk_event e;

	(void)state;
	assert_int_equal(stack_history_new(&chunks.chunk, look_back, &chunks), 0);
	stack_history_forget(chunks.chunk, 42);
	stack_history_absorb(chunks.before, chunks.chunk);
	e = event_of(1100, 1228, DWUNW_EVENT_STACK_DEGRADED);
	take(chunks.chunk, &e);
	assert_int_equal(chunks.asked, 1);
	free_chunks(&chunks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cut_stack_is_continued_by_the_thread_s_last_one),
		cmocka_unit_test(a_gap_another_thread_or_an_exec_is_not_bridged),
		cmocka_unit_test(what_is_told_to_be_the_same_is_kept),
		cmocka_unit_test(other_calls_are_not_continued),
		cmocka_unit_test(stacks_grow_to_twice_the_most_that_an_event_has),
		cmocka_unit_test(what_a_chunk_leaves_is_there_in_those_behind_it),
		cmocka_unit_test(what_a_chunk_forgets_is_not_there_any_more),
		cmocka_unit_test(a_thread_that_only_forgets_is_forgotten_behind_the_chunk_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
