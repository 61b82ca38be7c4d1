/* test_format_same.c - what a reader says of bytes that are as they were in the stack before */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/reader.h"
#include "tests/unit/format_world.h"

#define GOLDEN "tests/golden/v1.0-cxx.mlk"

/* The stack that was given out last for a thread. */
struct last {
	uint32_t tid, len;
	uint64_t sp;
	uint8_t bytes[MLK_MAX_STACK];
};

struct tally {
	int allocs, claims, exact, nothing;
	uint64_t bytes; /* said to be the same */
};

/* The lowest multiple of 8, or beginning of a stack, from which on both are the same, byte by byte;
 * UINT64_MAX when their ends differ or not one word is the same. */
static uint64_t compare(const struct last *a, const struct mlk_event *b)
{
	uint64_t sp = b->regs[MLK_SP_REG], end = sp + b->stack_len, at = end;
	uint64_t least = sp > a->sp ? sp : a->sp;

	if (!a->len || a->sp + a->len != end)
		return UINT64_MAX;
	while (at > least && a->bytes[at - 1 - a->sp] == b->stack[at - 1 - sp])
		at--;
	at = at > least ? (at + 7) & ~7ull : at;
	return at < end ? at : UINT64_MAX;
}

static void check(struct tally *t, const struct last *before, const struct mlk_event *ev)
{
	uint64_t truth = compare(before, ev), end = ev->regs[MLK_SP_REG] + ev->stack_len;

	t->allocs++;
	t->nothing += truth == UINT64_MAX;
	if (ev->stack_same_from == UINT64_MAX)
		return;
	assert_true(truth <= ev->stack_same_from && ev->stack_same_from < end);
	t->claims++;
	t->exact += truth == ev->stack_same_from;
	t->bytes += end - ev->stack_same_from;
}

static struct last *last_of(struct last *threads, uint32_t tid)
{
	while (threads->tid && threads->tid != tid)
		threads++;
	threads->tid = tid;
	return threads;
}

/* Compare what is claimed of each stack with the one before of the same thread. */
static struct tally check_reader(struct mlk_reader *r)
{
	struct last *threads = calloc(64, sizeof(*threads));
	struct tally t = {0};
	struct mlk_record rec;
	int got;

	assert_non_null(threads);
	mlk_reader_rewind(r, MLK_RECORD_EVENT);
	while ((got = mlk_reader_next(r, &rec)) == 1) {
		const struct mlk_event *ev = &rec.event;
		struct last *last = last_of(threads, ev->tid);

		if (ev->kind != MLK_ALLOC)
			continue;
		check(&t, last, ev);
		last->sp = ev->regs[MLK_SP_REG];
		last->len = ev->stack_len;
		if (ev->stack_len)
			memcpy(last->bytes, ev->stack, ev->stack_len);
	}
	assert_int_equal(got, 0);
	free(threads);
	return t;
}

static struct tally check_trace(const struct trace *trace)
{
	struct mlk_reader *r;
	struct tally t;

	assert_int_equal(mlk_reader_open_mem(&r, trace->bytes, trace->len), 0);
	t = check_reader(r);
	mlk_reader_free(r);
	return t;
}

static void no_byte_that_differs_is_said_to_be_the_same(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct trace trace = make_mode_trace(seed, MAX_EVENTS, 1000, (int)(seed % 3));
		struct tally t = check_trace(&trace);

		/* And no sameness is missed, but after the beginning of a chunk and where an image
		 * was emptied. */
		assert_true(t.claims > 500);
		assert_true(t.exact > t.claims * 95 / 100);
		assert_true(t.claims + t.nothing > t.allocs * 95 / 100);
		free(trace.bytes);
	}
}

static void nothing_is_the_same_as_before_a_chunk_that_is_lost(void **state)
{
	struct trace trace = make_mode_trace(5, 400, 10, MLK_STACK_FILTERED);

	(void)state;
	for (size_t at = 5000; at < trace.len; at += 5000)
		trace.bytes[at] ^= 0x10;
	assert_true(check_trace(&trace).allocs < 250);
	free(trace.bytes);
}

/* Stacks from @at on, as multiples of 8 KiB above a base, that empty the thread's image at last. */
static void nothing_is_the_same_once_the_image_was_emptied(void **state)
{
	static const struct {
		unsigned int at, len, byte;
	} stacks[] = {{16, 1, 1}, {8, 8, 1}, {7, 1, 1}, {0, 8, 0}};
	static uint8_t stack[MLK_MAX_STACK];
	const unsigned int unit = 8192;
	struct mlk_event ev = {.kind = MLK_ALLOC, .tgid = 1, .tid = 1, .nr_regs = 17};
	struct trace trace;
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);

	(void)state;
	for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
		ev.stack = memset(stack, (int)stacks[i].byte, sizeof(stack));
		ev.stack_len = stacks[i].len * unit;
		ev.regs[MLK_SP_REG] = STACK_TOP + (uint64_t)stacks[i].at * unit;
		assert_int_equal(mlk_writer_event(w, &ev), 0);
	}
	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 1), 0);
	mlk_writer_free(w);
	trace = slurp(fd);
	assert_int_equal(check_trace(&trace).claims, 0);
	free(trace.bytes);
}

/* The events of the trace, written anew in another mode. */
static struct trace copy_trace(struct mlk_reader *from, int mode)
{
	int fd, got;
	struct mlk_writer *w = open_writer(&fd, mode);
	struct mlk_record rec;

	mlk_reader_rewind(from, MLK_RECORD_EVENT | MLK_RECORD_MAPS);
	while ((got = mlk_reader_next(from, &rec)) == 1) {
		if (rec.type == MLK_RECORD_MAPS)
			mlk_writer_set_code(w, rec.maps.mappings, rec.maps.nr);
		else
			assert_int_equal(mlk_writer_event(w, &rec.event), 0);
	}
	assert_int_equal(got, 0);
	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 1), 0);
	mlk_writer_free(w);
	return slurp(fd);
}

static void claims_about_a_real_trace_are_true_in_all_modes(void **state)
{
	struct mlk_reader *r;
	struct tally t;

	(void)state;
	assert_int_equal(mlk_reader_open_file(&r, GOLDEN), 0);
	t = check_reader(r);
	assert_true(t.claims > 0 && t.bytes / (uint64_t)t.claims > 300);
	for (int mode = MLK_STACK_RAW; mode <= MLK_STACK_REDACTED; mode++) {
		struct trace copy = copy_trace(r, mode);

		t = check_trace(&copy);
		assert_true(t.claims > 0 && t.exact == t.claims);
		free(copy.bytes);
	}
	mlk_reader_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_byte_that_differs_is_said_to_be_the_same),
		cmocka_unit_test(nothing_is_the_same_as_before_a_chunk_that_is_lost),
		cmocka_unit_test(nothing_is_the_same_once_the_image_was_emptied),
		cmocka_unit_test(claims_about_a_real_trace_are_true_in_all_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
