/* test_preload_overruns.c - overruns from a preloaded library, or a hostile program, to the trace
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/reader.h"
#include "record/trace/overrun_list.h"
#include "tests/unit/preload_memory.h"

#define RING_SIZE 65536u

static const struct preload_sizes sizes = {
	.nr_rings = 1, .ring_size = RING_SIZE, .large_size = RING_SIZE};
#define SP 0x7fff00001000ull

struct world {
	struct preload_header *memory;
	struct shared_rings *rings;
	unsigned int nr_overruns, nr_stacks;
	uint64_t kept_from[4]; /* of the allocations */
	unsigned int nr_kept;
	struct event_overrun last;
};

static int on_event(void *ctx, uint64_t time_ns, void *data, const struct shared_view *view)
{
	const struct event_alloc *alloc = data;
	struct world *w = ctx;

	(void)time_ns;
	if (alloc->head.type == EVENT_OVERRUN) {
		assert_null(view);
		memcpy(&w->last, data, sizeof(w->last));
		w->nr_overruns++;
	}
	if (alloc->head.type == EVENT_ALLOC)
		w->kept_from[w->nr_kept++ % 4] = view->kept_from;
	w->nr_stacks += alloc->head.type == EVENT_ALLOC && alloc->head.what == FUNC_OVERRUN;
	return 0;
}

static uint32_t process_in(void *ctx, uint32_t slot)
{
	(void)ctx;
	return 7000 + slot;
}

static bool has_ended(void *ctx, uint32_t slot)
{
	(void)ctx;
	(void)slot;
	return false;
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct shared_rings_opts opts = {.sizes = sizes,
					 .event = on_event,
					 .process_in = process_in,
					 .has_ended = has_ended,
					 .ctx = w};

	assert_non_null(w);
	*state = w;
	return share_memory(&w->memory, &w->rings, &opts);
}

static int tear_down(void **state)
{
	struct world *w = *state;

	shared_rings_free(w->rings);
	free(w->memory);
	free(w);
	return 0;
}

static void put(struct world *w, const void *record, uint32_t len)
{
	uint8_t *to = (uint8_t *)w->memory + preload_ring_offset(&sizes, 0);

	memcpy(to + w->memory->rings[0].head, record, len);
	w->memory->rings[0].owner = 1ull << 32 | 100;
	w->memory->rings[0].head += len;
}

/* What times and stack pointers count from. */
static void put_base(struct world *w)
{
	struct preload_base b = {.len8 = sizeof(b) / 8, .type = PRELOAD_BASE, .time = 20, .sp = SP};

	put(w, &b, sizeof(b));
}

static struct preload_overrun overrun(void)
{
	struct preload_overrun e = {
		.record = {.len8 = sizeof(e) / 8, .type = EVENT_OVERRUN, .addr = 0x1000},
		.overrun = {.offset = 47, .len = 7, .changed = 6, .found = OVERRUN_AT_FREE}};

	e.record.size = 47;
	memset(e.overrun.bytes, 'x', 7);
	return e;
}

static uint64_t consume(struct world *w)
{
	struct mlk_losses losses = {0};

	shared_rings_look(w->rings, 1000, 10);
	assert_int_equal(shared_rings_consume(w->rings, UINT64_MAX), 0);
	shared_rings_losses(w->rings, &losses);
	return losses.count[MLK_LOST_ALLOC];
}

/* An allocation's record whose stack is one slice, which is told of as a whole. */
static void put_stack(struct world *w, uint8_t func)
{
	uint32_t stack[(56 + PRELOAD_SLICE) / 4] = {0};
	struct preload_alloc alloc = {.record = {.len8 = sizeof(stack) / 8,
						 .type = EVENT_ALLOC,
						 .func = func,
						 .after = 1,
						 .addr = 0x1000},
				      .stack_len = PRELOAD_SLICE,
				      .nr_slices = 1};

	assert_int_equal(preload_alloc_head(1), 56);
	memcpy(stack, &alloc, PRELOAD_ALLOC);
	memset((uint8_t *)stack + PRELOAD_ALLOC, 0xff, 4);
	put(w, stack, sizeof(stack));
}

static void what_was_found_comes_with_its_stack(void **state)
{
	struct world *w = *state;
	struct preload_overrun e = overrun();

	put_base(w);
	put(w, &e, sizeof(e));
	put_stack(w, FUNC_OVERRUN);
	assert_int_equal(consume(w), 0);
	assert_int_equal(w->nr_overruns, 1);
	assert_int_equal(w->nr_stacks, 1);
	assert_int_equal(w->last.block.addr, 0x1000);
	assert_int_equal(w->last.block.value, 47);
	assert_int_equal(event_tid(w->last.block.id), 100);
	assert_memory_equal(&w->last.overrun, &e.overrun, sizeof(e.overrun));
}

/* Nobody who takes allocations has seen it. */
static void of_the_stack_of_an_overrun_nothing_is_said_to_be_kept(void **state)
{
	struct world *w = *state;

	put_base(w);
	put_stack(w, FUNC_MALLOC);
	put_stack(w, FUNC_MALLOC);
	put_stack(w, FUNC_OVERRUN);
	put_stack(w, FUNC_MALLOC);
	assert_int_equal(consume(w), 0);
	assert_int_equal(w->nr_kept, 4);
	assert_int_not_equal(w->kept_from[1], 0);
	assert_int_equal(w->kept_from[3], 0);
}

static void what_cannot_be_is_counted_and_goes_no_further(void **state)
{
	struct world *w = *state;
	struct preload_overrun e = overrun();

	put_base(w);
	e.overrun.len = OVERRUN_BYTES + 1;
	put(w, &e, sizeof(e));
	e = overrun();
	e.overrun.changed = 8;
	put(w, &e, sizeof(e));
	e = overrun();
	e.record.len8--;
	put(w, &e, sizeof(e) - 8);
	e = overrun();
	put(w, &e, sizeof(e));
	assert_int_equal(consume(w), 3);
	assert_int_equal(w->nr_overruns, 1);
}

static void overruns_without_room_are_counted(void **state)
{
	struct world *w = *state;
	struct mlk_losses losses = {0};

	w->memory->lost[PRELOAD_LOST_OVERRUN] = 5;
	shared_rings_losses(w->rings, &losses);
	assert_int_equal(losses.count[MLK_LOST_OVERRUN], 5);
}

static struct event_overrun finding(uint32_t tid, uint64_t addr)
{
	struct event_overrun e = {.block = {.head = {.word = EVENT_OVERRUN},
					    .id = 42ull << 32 | tid,
					    .addr = addr,
					    .value = 47},
				  .overrun = {.offset = -1, .len = 1, .changed = 1, .found = 1}};

	e.overrun.bytes[0] = (uint8_t)tid;
	return e;
}

static struct mlk_event stack_of(uint32_t tid, uint64_t addr, uint64_t time_ns)
{
	static const uint8_t stack[64];
	struct mlk_event e = {.kind = MLK_ALLOC,
			      .nr_regs = DWUNW_MAX_ARCH_REGS,
			      .tgid = 42,
			      .tid = tid,
			      .time_ns = time_ns,
			      .addr = addr,
			      .stack = stack,
			      .stack_len = sizeof(stack)};

	e.regs[MLK_SP_REG] = SP;
	return e;
}

/* The next overrun of the trace, with @len bytes of stack. */
static void check_next(struct mlk_reader *r, uint32_t tid, uint64_t time_ns, uint32_t len)
{
	struct mlk_record rec;

	assert_int_equal(mlk_reader_next(r, &rec), 1);
	assert_int_equal(rec.overrun.at.tid, tid);
	assert_int_equal(rec.overrun.at.time_ns, time_ns);
	assert_int_equal(rec.overrun.at.stack_len, len);
	assert_int_equal(rec.overrun.offset, -1);
	assert_int_equal(rec.overrun.bytes[0], (uint8_t)tid);
}

static void threads_between_finding_and_stack_are_kept_apart(void **state)
{
	const struct mlk_meta meta = {.tgid = 42, .stack_mode = MLK_STACK_RAW};
	static struct overrun_list f;
	struct mlk_event ev;
	struct mlk_writer *w;
	struct mlk_reader *r;
	FILE *file = tmpfile();
	char path[64];

	(void)state;
	assert_int_equal(mlk_writer_open(&w, fileno(file), &meta, 1), 0);
	for (uint32_t tid = 1; tid <= OVERRUNS_WAITING + 1; tid++) {
		struct event_overrun e = finding(tid, 0x1000 * tid);

		assert_int_equal(overrun_list_add(&f, w, &e, tid), 0);
	}
	/* the first made room for the last */
	ev = stack_of(5, 0x5000, 105);
	assert_int_equal(overrun_list_write(&f, w, &ev), 0);
	ev = stack_of(6, 0x7000, 106); /* of another block: what was found was lost */
	assert_int_equal(overrun_list_write(&f, w, &ev), 0);
	assert_int_equal(f.nr, OVERRUNS_WAITING - 1);
	assert_int_equal(overrun_list_flush(&f, w), 0);
	assert_int_equal(f.nr, 0);
	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 1000), 0);
	mlk_writer_free(w);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file));
	assert_int_equal(mlk_reader_open_file(&r, path), 0);
	mlk_reader_rewind(r, MLK_RECORD_OVERRUN);
	check_next(r, 1, 1, 0);
	check_next(r, 5, 105, 64);
	mlk_reader_free(r);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_found_comes_with_its_stack, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			of_the_stack_of_an_overrun_nothing_is_said_to_be_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_is_counted_and_goes_no_further,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(overruns_without_room_are_counted, set_up,
						tear_down),
		cmocka_unit_test(threads_between_finding_and_stack_are_kept_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
