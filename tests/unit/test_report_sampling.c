/* test_report_sampling.c - what the blocks of a sampled trace stand for, and how sure that is */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <math.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/writer.h"
#include "report/base/sizes.h"
#include "report/context/sampling_text.h"
#include "report/live/live.h"
#include "report/live/sampling.h"

static struct live *start(uint64_t every, uint64_t bytes)
{
	struct sampling sampling = {.every = every, .bytes = bytes};
	struct live *live;

	assert_int_equal(live_new(&live), 0);
	live_set_sampling(live, &sampling);
	return live;
}

static void send(struct live *live, struct mlk_event event)
{
	static uint64_t ids;

	event.tgid = 100;
	event.alloc_id = ++ids;
	assert_int_equal(live_event(live, &event, 0), 0);
}

static void alloc(struct live *live, uint64_t addr, uint64_t size)
{
	send(live, (struct mlk_event){.kind = MLK_ALLOC, .tid = 1, .addr = addr, .size = size});
}

static void map(struct live *live, uint64_t addr, uint64_t size)
{
	send(live, (struct mlk_event){.kind = MLK_ALLOC,
				      .func = MLK_FUNC_MMAP,
				      .tid = 1,
				      .addr = addr,
				      .size = size});
}

static void other(struct live *live, enum mlk_kind kind, uint64_t addr, uint64_t size)
{
	send(live, (struct mlk_event){.kind = kind, .tid = 1, .addr = addr, .size = size});
}

static void check_amount(struct live_amount amount, uint64_t blocks, uint64_t bytes)
{
	assert_int_equal(amount.blocks, blocks);
	assert_int_equal(amount.bytes, bytes);
}

static void finish(struct live *live)
{
	const struct live_totals *t = live_totals(live);

	live_finish(live);
	check_amount(t->allocated,
		     t->freed.blocks + t->outstanding.blocks + t->implied.blocks + t->gone.blocks,
		     t->freed.bytes + t->outstanding.bytes + t->implied.bytes + t->gone.bytes);
	live_free(live);
}

static void of_one_in_n_each_stands_for_n(void **state)
{
	struct live *live = start(100, 0);

	(void)state;
	alloc(live, 0x1000, 47);
	alloc(live, 0x2000, 53);
	other(live, MLK_FREE, 0x1000, 0);
	check_amount(live_totals(live)->allocated, 200, 10000);
	check_amount(live_totals(live)->freed, 100, 4700);
	check_amount(live_totals(live)->outstanding, 100, 5300);
	finish(live);
}

static void without_a_sample_each_stands_for_itself(void **state)
{
	static const uint64_t every[] = {0, 1};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct live *live = start(every[i], 0);

		alloc(live, 0x1000, 47);
		check_amount(live_totals(live)->outstanding, 1, 47);
		finish(live);
	}
}

static void by_bytes_a_block_stands_for_one_over_its_chance(void **state)
{
	struct sampling s = {.bytes = 4096};
	struct live *live = start(0, 4096);

	(void)state;
	/* 1 / (1 - exp(-64 / 4096)) by bc(1) */
	assert_true(fabs(sampling_weight(&s, 64) - 64.50130207803517) < 1e-9);
	assert_true(fabs(sampling_weight(&s, 4096) - 1.5819767068693265) < 1e-12);
	assert_true(sampling_weight(&s, 1 << 20) == 1);
	assert_true(fabs(sampling_weight(&s, 0) - sampling_weight(&s, 1)) < 1e-9);
	alloc(live, 0x1000, 64);
	assert_int_equal(live_totals(live)->outstanding.bytes, 4128); /* 64 * 64.5013 */
	assert_in_range(live_totals(live)->outstanding.blocks, 64, 65);
	finish(live);
}

/* The mean of whole numbers is the fraction that they stand for. */
static void blocks_are_whole_and_right_on_average(void **state)
{
	struct live *live = start(0, 4096);
	double expected = 100000 * sampling_weight(&(struct sampling){.bytes = 4096}, 3000);
	double got;

	(void)state;
	for (uint64_t i = 0; i < 100000; i++)
		alloc(live, 0x1000 + i * 4096, 3000);
	got = (double)live_totals(live)->outstanding.blocks;
	/* a standard deviation is at most 0.5 * sqrt(100000) = 158 */
	assert_true(fabs(got - expected) < 158 * 6);
	finish(live);
}

static void pieces_of_a_sampled_mapping_add_up(void **state)
{
	struct live *live = start(0, 100000);
	uint64_t before;

	(void)state;
	map(live, 0x10000, 0x10000);
	before = live_totals(live)->outstanding.bytes;
	assert_int_equal(before, lround(4096 / -expm1(-65536 / 1e5)) * 16);
	other(live, MLK_UNMAP, 0x13000, 0x1000);
	other(live, MLK_UNMAP, 0x17000, 0x3000);
	assert_int_equal(live_totals(live)->outstanding.bytes, before / 16 * 12);
	other(live, MLK_FREE, 1, 0); /* the thread goes on: what it unmapped is gone */
	assert_int_equal(live_totals(live)->freed.bytes, before / 16 * 4);
	other(live, MLK_UNMAP, 0x10000, 0x10000);
	assert_int_equal(live_totals(live)->outstanding.bytes, 0);
	finish(live);
}

static void sums_hold_through_realloc_reuse_and_exec(void **state)
{
	struct live *live = start(0, 1000);

	(void)state;
	for (uint64_t i = 0; i < 50; i++)
		alloc(live, 0x1000 + i * 512, 10 + i * 37);
	alloc(live, 0x1000, 77); /* its free was not seen */
	other(live, MLK_RELEASE, 0x1200, 0);
	other(live, MLK_RESTORE, 0x1200, 0);
	other(live, MLK_RELEASE, 0x1400, 0);
	alloc(live, 0x9000, 123);
	map(live, 0x100000, 10000);
	other(live, MLK_UNMAP, 0x101000, 0x1000);
	map(live, 0x100000, 4096);
	assert_true(live_totals(live)->implied.blocks > 0);
	other(live, MLK_EXEC, 0, 0);
	assert_int_equal(live_totals(live)->outstanding.blocks, 0);
	assert_int_equal(live_totals(live)->outstanding.bytes, 0);
	finish(live);
}

static void add_error(void *error, const struct live_block *block)
{
	sampling_error_add(error, block);
}

/* Against the definition: the variance of a sum of independent drawings. */
static void the_standard_error_is_that_of_many_drawings(void **state)
{
	enum { BLOCKS = 200, TRIALS = 4000 };
	struct sampling s = {.bytes = 500};
	double sum = 0, squares = 0, variance, estimated = 0;

	(void)state;
	srand48(47);
	for (int trial = 0; trial < TRIALS; trial++) {
		struct live *live = start(0, s.bytes);
		struct sampling_error error = {0};
		double bytes;

		for (uint64_t i = 0; i < BLOCKS; i++) {
			uint64_t size = 10 + i * 5;

			if (drand48() < 1 / sampling_weight(&s, size))
				alloc(live, 0x1000 + i * 4096, size);
		}
		live_each(live, add_error, &error);
		bytes = (double)live_totals(live)->outstanding.bytes;
		sum += bytes;
		squares += bytes * bytes;
		estimated += error.bytes / TRIALS;
		live_free(live);
	}
	/* the blocks have 101,500 bytes; 4,000 trials give a mean to about 0.1 %, a variance to 2.2
	 * % */
	assert_true(fabs(sum / TRIALS / 101500 - 1) < 0.006);
	variance = (squares - sum * sum / TRIALS) / (TRIALS - 1);
	assert_true(fabs(estimated / variance - 1) < 0.13);
}

static void a_weight_beyond_all_bounds_is_cut(void **state)
{
	struct live *live = start(UINT64_MAX, 0);

	(void)state;
	alloc(live, 0x1000, UINT64_MAX);
	other(live, MLK_FREE, 0x1000, 0);
	finish(live);
	live = start(0, UINT64_MAX);
	alloc(live, 0x1000, 0);
	finish(live);
}

/* What print_sampling() says of a trace with @meta and @losses in which 3 blocks of 40 bytes are
 * outstanding.  The caller frees it. */
static char *printed(const struct mlk_meta *meta, const struct mlk_losses *losses)
{
	char path[] = "/tmp/test_report_sampling.XXXXXX", *text;
	struct mlk_event event = {.kind = MLK_ALLOC, .func = MLK_FUNC_MALLOC, .nr_regs = 17};
	struct mlk_reader *trace;
	struct mlk_writer *w;
	struct replay *leaks;
	int fd = mkstemp(path);
	size_t len;
	FILE *out;

	assert_int_equal(mlk_writer_open(&w, fd, meta, 1), 0);
	event.size = 40;
	event.time_ns = 1;
	for (event.addr = 0x1000; event.addr <= 0x3000; event.addr += 0x1000)
		assert_int_equal(mlk_writer_event(w, &event), 0);
	mlk_writer_set_losses(w, losses);
	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 2), 0);
	mlk_writer_free(w);
	close(fd);
	assert_int_equal(mlk_reader_open_file(&trace, path), 0);
	unlink(path);
	assert_int_equal(replay_collect(&leaks, trace, &(struct replay_opts){0}), 0);
	out = open_memstream(&text, &len);
	print_sampling(out, mlk_reader_meta(trace), leaks);
	fclose(out);
	replay_free(leaks);
	mlk_reader_free(trace);
	return text;
}

static void check_printed(const struct mlk_meta *meta, const struct mlk_losses *losses,
			  const char *expected)
{
	char *text = printed(meta, losses);

	assert_string_equal(text, expected);
	free(text);
}

#define UNKNOWN                                                                            \
	.command = "", .exe = "", .comm = "", .hostname = "", .kernel = "", .machine = "", \
	.recorder = "", .backend = ""

static void filters_are_told_with_what_they_left_out(void **state)
{
	static const struct mlk_meta none = {UNKNOWN};
	static const struct mlk_meta sizes = {UNKNOWN, .min_size = 64, .max_size = 4096};
	static const struct mlk_meta every = {UNKNOWN, .sample_every = 5000};
	static const struct mlk_meta bytes = {UNKNOWN, .sample_bytes = 512 << 10};
	static const struct mlk_meta trigger = {UNKNOWN, .trigger_bytes = 1 << 20};
	static const struct mlk_losses nothing;
	static const struct mlk_losses losses = {
		.skipped = {1001, 1002, 1003, 1004, 1005, 1006},
		.skipped_bytes = {10001, 10002, 10003, 10004, 10005, 10006}};

	(void)state;
	check_printed(&none, &nothing, "");
	check_printed(&sizes, &nothing,
		      "  not recorded: blocks below 64 or above 4,096 bytes (0 blocks, 0 bytes)\n");
	/* the root of 3 * 5000 * 4999 is 8659.4; of 512 Ki / 40 = 13107.7 for p, 22702.6 */
	check_printed(&every, &nothing,
		      "  sampled: one of 5,000 allocations; all blocks and bytes are estimates\n"
		      "    standard error of what is outstanding: 8,660 blocks, 346,376 bytes\n"
		      "    not recorded: allocations that are not in the sample (0 blocks, 0 "
		      "bytes)\n");
	check_printed(&bytes, &nothing,
		      "  sampled: one allocation in 524,288 bytes on average; all blocks and bytes "
		      "are estimates\n"
		      "    standard error of what is outstanding: 22,703 blocks, 908,094 bytes\n"
		      "    not recorded: allocations that are not in the sample (0 blocks, 0 "
		      "bytes)\n");
	check_printed(&trigger, &losses,
		      "  not recorded: blocks of some sizes (1,001 blocks, 10,001 bytes)\n"
		      "  not recorded: threads until they had 1,048,576 bytes outstanding (1,003 "
		      "blocks, 10,003 bytes)\n"
		      "  not recorded: events before the delay was over (1,004 blocks, 10,004 "
		      "bytes)\n"
		      "  not recorded: 1,005 frees of blocks that are not in the trace\n"
		      "  table of recorded blocks full: 1,006; other blocks' frees are in the "
		      "trace\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_one_in_n_each_stands_for_n),
		cmocka_unit_test(without_a_sample_each_stands_for_itself),
		cmocka_unit_test(by_bytes_a_block_stands_for_one_over_its_chance),
		cmocka_unit_test(blocks_are_whole_and_right_on_average),
		cmocka_unit_test(pieces_of_a_sampled_mapping_add_up),
		cmocka_unit_test(sums_hold_through_realloc_reuse_and_exec),
		cmocka_unit_test(the_standard_error_is_that_of_many_drawings),
		cmocka_unit_test(a_weight_beyond_all_bounds_is_cut),
		cmocka_unit_test(filters_are_told_with_what_they_left_out),
	};

	sizes_set_exact(true); /* figures are compared with exact ones */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
