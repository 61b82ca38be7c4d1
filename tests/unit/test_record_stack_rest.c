/* test_record_stack_rest.c - the recorder knows which cut stacks a reader can continue, and what it
 * reads of the others continues them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/reader.h"
#include "format/writer.h"
#include "record/target/stack_rest.h"
#include "report/decode/stack_history.h"

#define ROOM   ((size_t)3 << 20) /* bytes of the stack: the uppermost 2 MiB can be read */
#define PAGE   4096u
#define EVENTS 3000u
#define SECOND 1000000000ull

static const struct mlk_meta meta = {.tgid = 42, .start_ns = 1, .stack_mode = MLK_STACK_RAW};

/* A thread's stack, [bytes, bytes + ROOM), with pages on both sides that are no part of it. */
struct world {
	uint8_t *map, *bytes;
	uint64_t top;
	struct target target;
	FILE *file;
	struct mlk_writer *writer;
	struct stack_rest rest;
	struct stack_rest_pace pace;
	uint64_t now_ns;
	const uint8_t *late; /* this byte was another one at the event; NULL: none was */
	uint32_t nr;
	bool whole[EVENTS]; /* a reader can continue the event, or has all of it */
	uint64_t end[EVENTS];
};

static void begin(struct world *w)
{
	unsigned int seed = 1;

	memset(w, 0, sizeof(*w));
	w->map = mmap(NULL, ROOM + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(w->map, MAP_FAILED);
	w->bytes = w->map + PAGE;
	assert_int_equal(mprotect(w->bytes, ROOM, PROT_READ | PROT_WRITE), 0);
	w->top = (uintptr_t)w->bytes + ROOM;
	for (size_t i = 0; i < ROOM; i += 8)
		memcpy(w->bytes + i, (uint32_t[]){(uint32_t)rand_r(&seed), (uint32_t)i}, 8);
	w->target.pid = w->target.task = getpid();
	w->target.pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	assert_true(w->target.pidfd >= 0);
	w->file = tmpfile();
	assert_non_null(w->file);
	assert_int_equal(mlk_writer_open(&w->writer, fileno(w->file), &meta, 1), 0);
	w->now_ns = SECOND;
}

/* The thread allocates at @depth bytes below where its stack begins; @flags beyond what the depth
 * says. */
static void allocate(struct world *w, uint64_t depth, uint64_t len, uint32_t flags)
{
	static uint8_t then[MLK_MAX_STACK];
	struct mlk_event e = {.kind = MLK_ALLOC,
			      .func = MLK_FUNC_MALLOC,
			      .nr_regs = 17,
			      .flags = flags,
			      .tgid = 42,
			      .tid = 42,
			      .time_ns = w->now_ns,
			      .addr = 0x1000,
			      .size = 47,
			      .alloc_id = w->nr + 1,
			      .stack = then,
			      .stack_len = (uint32_t)len};
	const uint8_t *now = (const uint8_t *)(uintptr_t)(w->top - depth);

	memcpy(then, now, len);
	if (w->late)
		then[w->late - now] ^= 1;
	e.regs[MLK_SP_REG] = w->top - depth;
	assert_int_equal(stack_rest_before(&w->rest, &w->pace, &w->target, &e, w->writer), 0);
	assert_int_equal(mlk_writer_event(w->writer, &e), 0);
	w->end[w->nr] = e.regs[MLK_SP_REG] + len;
	w->whole[w->nr++] = w->rest.whole;
}

static void allocate_at(struct world *w, uint64_t depth)
{
	if (depth > MLK_MAX_STACK)
		allocate(w, depth, MLK_MAX_STACK, DWUNW_EVENT_STACK_LIMIT);
	else
		allocate(w, depth, depth, 0);
}

/* Is the stack of the @i-th event continued to its end where the recorder thinks so, by what there
 * is in memory, and nowhere else? */
static void check(const struct world *w, uint32_t i, struct stack_history *history,
		  const struct mlk_event *e)
{
	struct dwunw_stack stack;
	uint64_t stale_from, sp = e->regs[MLK_SP_REG];
	bool longer = stack_history_pop(history, e, &stack, &stale_from);
	bool cut = e->flags & (DWUNW_EVENT_STACK_LIMIT | DWUNW_EVENT_STACK_DEGRADED);

	if (!cut) {
		assert_false(longer);
		return;
	}
	assert_int_equal(longer && stack.addr + stack.len == w->top, w->whole[i]);
	if (!longer)
		return;
	assert_int_equal(stack.addr, sp);
	assert_int_equal(stale_from, w->end[i]);
	assert_memory_equal(stack.bytes, (uint8_t *)(uintptr_t)sp, stack.len);
}

/* Read the trace as a report does.  Returns how often the stack was read for it. */
static unsigned int end(struct world *w)
{
	struct stack_history *history;
	struct mlk_record rec;
	struct mlk_reader *r;
	unsigned int reads = 0, events = 0;
	uint8_t *bytes;
	size_t len;

	assert_int_equal(mlk_writer_finish(w->writer, MLK_END_SIGNAL, w->now_ns), 0);
	mlk_writer_free(w->writer);
	len = (size_t)lseek(fileno(w->file), 0, SEEK_END);
	bytes = malloc(len);
	assert_non_null(bytes);
	assert_int_equal(pread(fileno(w->file), bytes, len, 0), len);
	assert_int_equal(mlk_reader_open_mem(&r, bytes, len), 0);
	assert_int_equal(stack_history_new(&history, NULL, NULL), 0);
	mlk_reader_rewind(r, MLK_RECORD_STACK | MLK_RECORD_EVENT);
	while (mlk_reader_next(r, &rec) == 1) {
		struct dwunw_stack stack;
		uint64_t stale_from;

		if (rec.type == MLK_RECORD_EVENT) {
			check(w, events++, history, &rec.event);
			continue;
		}
		reads += !(rec.event.flags & DWUNW_EVENT_STACK_LIMIT);
		rec.event.stack_same_from = UINT64_MAX;
		stack_history_pop(history, &rec.event, &stack, &stale_from);
	}
	assert_int_equal(events, w->nr);
	stack_history_free(history);
	mlk_reader_free(r);
	free(bytes);
	fclose(w->file);
	close(w->target.pidfd);
	munmap(w->map, ROOM + 2 * PAGE);
	return reads;
}

static void what_came_before_is_not_read(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	for (uint64_t depth = 4096; depth < 600000; depth += 40000)
		allocate_at(&w, depth);
	assert_true(w.whole[w.nr - 1]);
	assert_int_equal(end(&w), 0);
}

static void what_is_missing_is_read_and_somewhat_later_anew(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	allocate_at(&w, 4096);
	allocate_at(&w, 600000);
	assert_true(w.whole[1]);
	allocate_at(&w, 650000); /* joins it */
	w.now_ns += SECOND / 4 - 1;
	allocate_at(&w, 650000);
	w.now_ns++;
	allocate_at(&w, 650000);
	assert_true(w.whole[4]);
	assert_int_equal(end(&w), 2);
}

/* The thread has returned since the event. */
static void other_calls_are_not_read(void **state)
{
	struct world w;
	uint8_t *uppermost;

	(void)state;
	begin(&w);
	allocate_at(&w, 4096);
	uppermost = (uint8_t *)(uintptr_t)(w.top - 600000 + MLK_MAX_STACK - 8);
	w.late = uppermost;
	allocate_at(&w, 600000);
	assert_false(w.whole[1]);
	w.now_ns += SECOND;
	w.late = NULL;
	allocate_at(&w, 600000);
	assert_true(w.whole[2]);
	assert_int_equal(end(&w), 1);
}

/* Nothing tells of the end of such a stack; and of these there is more than is read. */
static void what_cannot_be_read_is_told_as_cut(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	allocate_at(&w, 3 << 20);
	assert_false(w.whole[0]);
	w.now_ns += SECOND;
	w.target.pid = w.target.task = 0;
	allocate_at(&w, 600000);
	assert_false(w.whole[1]);
	assert_int_equal(end(&w), 0);
}

/* A thread that comes down and goes up all the time, in whatever steps. */
static void recorder_and_reader_agree(void **state)
{
	unsigned int seed = 7, reads, joined = 0;
	uint64_t begun;
	struct world w;

	(void)state;
	begin(&w);
	begun = w.now_ns;
	while (w.nr < EVENTS) {
		uint64_t depth = (uint64_t)rand_r(&seed) % (rand_r(&seed) % 4 ? 200000 : 2000000);

		depth = (depth + 64) & ~7ull;
		if (rand_r(&seed) % 8 == 0 && depth > 128)
			allocate(&w, depth, 128, DWUNW_EVENT_STACK_DEGRADED);
		else if (rand_r(&seed) % 16 == 0)
			allocate(&w, depth, depth < 4096 ? depth : 4096,
				 DWUNW_EVENT_STACK_UNBOUNDED);
		else
			allocate_at(&w, depth);
		w.now_ns += (uint64_t)rand_r(&seed) % 4000000;
		joined += w.whole[w.nr - 1];
	}
	reads = end(&w);
	assert_in_range(reads, 9, 8 + 8 * (w.now_ns - begun) / SECOND);
	assert_in_range(joined, EVENTS / 8, EVENTS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_came_before_is_not_read),
		cmocka_unit_test(what_is_missing_is_read_and_somewhat_later_anew),
		cmocka_unit_test(other_calls_are_not_read),
		cmocka_unit_test(what_cannot_be_read_is_told_as_cut),
		cmocka_unit_test(recorder_and_reader_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
