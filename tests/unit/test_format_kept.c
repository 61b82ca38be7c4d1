/* test_format_kept.c - a writer that is told what of a stack is as before writes the same trace */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/reader.h"
#include "tests/unit/format_world.h"

#define SLICE 128u

/* The stack that was written last for a thread. */
struct last {
	uint32_t len;
	uint64_t sp;
	uint8_t bytes[MLK_MAX_STACK];
};

/* The lowest multiple of SLICE from which on @ev's stack is the last one; 0: their ends differ. */
static uint64_t kept_from(const struct last *last, const struct mlk_event *ev)
{
	uint64_t sp = ev->regs[MLK_SP_REG], end = sp + ev->stack_len, at = end;
	uint64_t least = sp > last->sp ? sp : last->sp;

	if (!last->len || last->sp + last->len != end)
		return 0;
	while (at > least && ev->stack[at - 1 - sp] == last->bytes[at - 1 - last->sp])
		at--;
	return (at + SLICE - 1) & ~(uint64_t)(SLICE - 1);
}

static void note(struct last *last, const struct mlk_event *ev)
{
	last->sp = ev->regs[MLK_SP_REG];
	last->len = ev->stack_len;
	memcpy(last->bytes, ev->stack, ev->stack_len);
}

/* A trace of the world with @seed, whose code changes now and then; with @tell the writer is told
 * what is kept, and in *@told how many bytes that were. */
static struct mlk_reader *make(uint64_t seed, int mode, bool tell, uint64_t *told,
			       struct trace *trace)
{
	struct mlk_mapping code = {
		.start = CODE, .end = CODE + CODE_LEN, .perms = MLK_PERM_X, .path = "/code"};
	struct last *last = calloc(NR_THREADS, sizeof(*last));
	struct world *world = world_new(seed);
	struct mlk_reader *r;
	int fd;
	struct mlk_writer *w = open_writer(&fd, mode);

	assert_non_null(last);
	for (int i = 0; i < MAX_EVENTS; i++) {
		struct mlk_event ev = world_event(world);
		struct last *l = &last[ev.tid - 4711];

		if (i % 300 == 0) {
			code.end = CODE + CODE_LEN / (uint64_t)(1 + i / 300 % 3);
			mlk_writer_set_code(w, &code, 1);
		}
		if (ev.kind == MLK_ALLOC && tell) {
			ev.stack_kept_from = kept_from(l, &ev);
			if (ev.stack_kept_from)
				*told += ev.regs[MLK_SP_REG] + ev.stack_len - ev.stack_kept_from;
		}
		if (ev.kind == MLK_ALLOC)
			note(l, &ev);
		assert_int_equal(mlk_writer_event(w, &ev), 0);
		if (i % 700 == 699)
			assert_int_equal(mlk_writer_flush(w), 0);
	}
	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 77), 0);
	mlk_writer_free(w);
	free(world);
	free(last);
	*trace = slurp(fd);
	assert_int_equal(mlk_reader_open_mem(&r, trace->bytes, trace->len), 0);
	mlk_reader_rewind(r, MLK_RECORD_EVENT);
	return r;
}

static void assert_same_events(struct mlk_reader *a, struct mlk_reader *b)
{
	struct mlk_record x, y;
	int got;

	while ((got = mlk_reader_next(a, &x)) == 1) {
		assert_int_equal(mlk_reader_next(b, &y), 1);
		assert_int_equal(x.event.kind, y.event.kind);
		assert_int_equal(x.event.addr, y.event.addr);
		if (x.event.kind != MLK_ALLOC)
			continue;
		assert_memory_equal(x.event.regs, y.event.regs, sizeof(x.event.regs));
		assert_int_equal(x.event.stack_len, y.event.stack_len);
		if (x.event.stack_len)
			assert_memory_equal(x.event.stack, y.event.stack, x.event.stack_len);
	}
	assert_int_equal(got, 0);
	assert_int_equal(mlk_reader_next(b, &y), 0);
}

static void what_is_told_to_be_kept_is_as_if_it_had_been_compared(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct trace one, other;
		uint64_t told = 0;
		struct mlk_reader *a = make(seed, (int)(seed % 3), false, &told, &one);
		struct mlk_reader *b = make(seed, (int)(seed % 3), true, &told, &other);

		assert_same_events(a, b);
		assert_true(told > 1 << 20);
		mlk_reader_free(a);
		mlk_reader_free(b);
		free(one.bytes);
		free(other.bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_told_to_be_kept_is_as_if_it_had_been_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
