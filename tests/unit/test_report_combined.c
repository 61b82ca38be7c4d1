/* test_report_combined.c - features of the report together: several processes, and samples, in each
 * format */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "format/writer.h"
#include "mleak.h"
#include "report/base/sizes.h"
#include "report/output/print_growth.h"
#include "report/report_run.h"
#include "report/stats/stack_stats.h"

#define MOTHER 100
#define CHILD  200
#define SECOND 1000000000u

#define UNKNOWN                                                                            \
	.command = "", .exe = "", .comm = "", .hostname = "", .kernel = "", .machine = "", \
	.recorder = "", .backend = ""

static const struct mlk_meta plain = {UNKNOWN, .tgid = MOTHER, .start_ns = SECOND};
static const struct mlk_meta sampled = {UNKNOWN, .tgid = MOTHER, .start_ns = SECOND,
					.sample_every = 10};

static char path[] = "/tmp/test_report_combined.XXXXXX";

static void send(struct mlk_writer *w, struct mlk_event event)
{
	static uint64_t ids;
	static const uint8_t stack[64];

	event.tid = event.tgid;
	event.func = MLK_FUNC_MALLOC;
	if (event.kind == MLK_ALLOC) {
		event.nr_regs = 17;
		event.alloc_id = ++ids;
		event.regs[MLK_SP_REG] = 0x7fff0000;
		event.regs[16] = 0x400000 + event.size;
		event.stack = stack;
		event.stack_len = sizeof(stack);
	}
	assert_int_equal(mlk_writer_event(w, &event), 0);
}

/* The mother has 3 blocks of 1,000 bytes, the child 2 of 1,000 and 1 of 50 and freed one of 70 at
 * once.  In the second 5 a free was lost. */
static void write_trace(const struct mlk_meta *meta)
{
	struct mlk_thread threads[] = {{MOTHER, MOTHER, "mother"}, {CHILD, CHILD, "child"}};
	struct mlk_losses losses = {.first_ns = 5ull * SECOND, .last_ns = 6ull * SECOND};
	int fd = open(path, O_WRONLY | O_TRUNC);
	struct mlk_writer *w;

	assert_true(fd >= 0);
	assert_int_equal(mlk_writer_open(&w, fd, meta, 1), 0);
	assert_int_equal(mlk_writer_threads(w, threads, 2), 0);
	for (uint64_t i = 1; i <= 3; i++)
		send(w, (struct mlk_event){MLK_ALLOC, .tgid = MOTHER, .time_ns = 2ull * SECOND,
					   .addr = 0x1000 * i, .size = 1000});
	send(w,
	     (struct mlk_event){MLK_FORK, .tgid = CHILD, .time_ns = 3ull * SECOND, .addr = MOTHER});
	send(w,
	     (struct mlk_event){MLK_FREE, .tgid = CHILD, .time_ns = 3ull * SECOND, .addr = 0x1000});
	for (uint64_t i = 1; i <= 2; i++)
		send(w, (struct mlk_event){MLK_ALLOC, .tgid = CHILD, .time_ns = 4ull * SECOND,
					   .addr = 0x1000 * i, .size = 1000});
	send(w, (struct mlk_event){MLK_ALLOC, .tgid = CHILD, .time_ns = 4ull * SECOND,
				   .addr = 0x8000, .size = 50});
	send(w, (struct mlk_event){MLK_ALLOC, .tgid = CHILD, .time_ns = 4ull * SECOND,
				   .addr = 0x9000, .size = 70});
	send(w, (struct mlk_event){MLK_FREE, .tgid = CHILD, .time_ns = 4ull * SECOND + 3000,
				   .addr = 0x9000});
	losses.count[MLK_LOST_FREE] = 1;
	mlk_writer_set_losses(w, &losses);
	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 9ull * SECOND), 0);
	mlk_writer_free(w);
	close(fd);
}

static FILE *print(struct report_run *job, const struct report_opts *opts, FILE *out)
{
	struct table table = {.by = opts->by,
			      .growth = job->growth,
			      .timeline = opts->timeline,
			      .opts.format = format_of_table(opts->format)};
	struct report_data export = report_run_export(job);

	if (opts->by || opts->growth || opts->timeline)
		assert_int_equal(format_print_table(out, &export, &table), 0);
	else
		assert_int_equal(format_print(out, opts->format, &export, job->events), 0);
	return out;
}

/* What `mleak report @first @second` prints, in a buffer that the next call fills anew; NULL: it
 * is refused. */
static const char *report(const char *first, const char *second)
{
	char *argv[] = {"report", (char *)first, (char *)second, path, NULL};
	static char text[1 << 20];
	struct report_opts opts;
	struct report_run job = {0};
	FILE *out = fmemopen(text, sizeof(text), "w");
	int status;

	assert_int_equal(report_opts_parse(&opts, 4, argv), 0);
	assert_int_equal(report_run_open(&job, &opts, path, NULL), EXIT_OK);
	status = report_run_collect(&job);
	if (status == EXIT_OK) {
		assert_int_equal(report_run_view(&job, &opts.view, true), EXIT_OK);
		print(&job, &opts, out);
	}
	fclose(out);
	report_run_release(&job);
	report_opts_release(&opts);
	return status == EXIT_OK ? text : NULL;
}

static void check_has(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("no '%s' in:\n%s", part, text ? text : "(refused)");
}

static void check_has_not(const char *text, const char *part)
{
	if (!text || strstr(text, part))
		fail_msg("'%s' in:\n%s", part, text ? text : "(refused)");
}

static size_t count_of(const char *text, const char *part)
{
	size_t nr = 0;

	for (; (text = strstr(text, part)); text++)
		nr++;
	return nr;
}

static void of_several_processes_each_format_tells_which(void **state)
{
	(void)state;
	write_trace(&plain);
	check_has(report("--flat", "--addresses"),
		  "3,000 bytes in 3 allocations from stack of mother");
	check_has(report("--flat", "--addresses"),
		  "2,000 bytes in 2 allocations from stack of child");
	check_has(report("--folded", "--addresses"), ";child (200);");
	check_has(report("--format=csv", "--addresses"), "\",100,");
	check_has(report("--format=csv", "--addresses"), "\",200,");
	check_has(report("--format=json", "--addresses"),
		  "\"pid\":200,\"comm\":\"child\",\"parent\":100");
	check_has(report("--format=json", "--addresses"), "\"process\":1");
	check_has(report("--format=speedscope", "--addresses"), "\"name\":\"child (200)\"");
	check_has(report("--format=html", "--addresses"), "\"child (200)\"");
	check_has(report("--format=heaptrack", "--addresses"), "child (200)\n");
	check_has(report("--growth", "--addresses"), "    child (200)\n");
	check_has(report("--growth", "--format=csv"), "\",200,");
	check_has(report("--growth", "--format=json"), "\"share_freed\":0.0000,");
	check_has(report("--growth", "--format=json"), "\"process\":1,");
}

/* By the wire format of protocol buffers: a string is a field's number and its length before it. */
static void pprof_has_processes_as_labels(void **state)
{
	const char *packed;
	char text[4096] = "";
	z_stream z = {0};

	(void)state;
	write_trace(&plain);
	packed = report("--format=pprof", "--addresses");
	assert_int_equal(inflateInit2(&z, 31), Z_OK);
	z.next_in = (void *)packed;
	z.avail_in = 1 << 20;
	z.next_out = (void *)text;
	z.avail_out = sizeof(text) - 1;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_non_null(memmem(text, z.total_out, "\x32\x07process", 9));
	assert_non_null(memmem(text, z.total_out,
			       "\x32\x0b"
			       "child (200)",
			       13));
	inflateEnd(&z);
}

static void of_one_process_no_format_says_more_than_before(void **state)
{
	(void)state;
	write_trace(&plain);
	/* the fork was later */
	check_has_not(report("--flat", "--at=1500ms"), " of mother");
	check_has(report("--format=json", "--at=1500ms"), "\"process\":0");
}

static void with_pid_all_sums_are_of_it(void **state)
{
	const char *text;

	(void)state;
	write_trace(&plain);
	text = report("--format=json", "--pid=200");
	check_has(text, "\"totals\":{\n  \"allocated\":{\"blocks\":4,\"bytes\":2120}");
	check_has(text, "\"peak\":{\"blocks\":4,\"bytes\":2120}");
	check_has(text, "\"suspect\":{\"blocks\":3,\"bytes\":2050}");
	check_has(text, "\"unwound\":{\n  \"allocations\":4,");
	check_has(text, "\"filtered\":{\n  \"blocks\":0,\n  \"bytes\":0\n }");
	check_has(report("--format=html", "--pid=200"),
		  "\"outstanding\":{\"blocks\":3,\"bytes\":2050}");
	check_has(report("--by=age", "--pid=200"), "       2,050           3  1 s - 10 s");
	check_has(report("--by=age", "--pid=200"), "suspect: 3 of these blocks (2,050 bytes)");
	check_has(report("--timeline", "--pid=200"), "           2,050");
	check_has_not(report("--timeline", "--pid=200"), "3,000");
}

static void heaptrack_has_no_events_of_what_is_not_asked_for(void **state)
{
	const char *text;

	(void)state;
	write_trace(&plain);
	text = report("--format=heaptrack", "--addresses");
	assert_int_equal(count_of(text, "\n+ "), 7);
	text = report("--format=heaptrack", "--pid=200");
	assert_int_equal(count_of(text, "\n+ "), 4);
	assert_int_equal(count_of(text, "\n- "), 1);
	text = report("--format=heaptrack", "--min-bytes=2500");
	assert_int_equal(count_of(text, "\n+ "), 3);
	assert_int_equal(count_of(text, "\n- "), 0);
	/* what --top leaves out is asked for, but not told apart */
	text = report("--format=heaptrack", "--top=1");
	assert_int_equal(count_of(text, "\n+ "), 7);
	check_has(text, "[left out]");
}

static void a_sample_stands_for_as_much_in_each_table(void **state)
{
	(void)state;
	write_trace(&sampled);
	check_has(report("--by=size", "--format=csv"), "50000,50,\"513 - 1024\"");
	check_has(report("--by=age", "--format=csv"), "50500,60,");
	check_has(report("--timeline", "--format=csv"), ",50500,,\r\n");
	check_has(report("--growth", "--format=csv"), ",30000,30,");
	check_has(report("--format=json", "--pid=200"), "\"suspect\":{\"blocks\":30,");
	check_has(report("--format=json", "--pid=200"),
		  "\"outstanding\":{\"blocks\":30,\"bytes\":20500}");
}

static void freed(struct growth *growth, uint64_t after_ns, uint64_t blocks)
{
	struct live_block block = {.time_ns = SECOND};
	struct mlk_event event = {.kind = MLK_FREE, .time_ns = SECOND + after_ns};

	growth_changed(growth, &(struct live_change){.sum = LIVE_FREED,
						     .block = &block,
						     .event = &event,
						     .more = {blocks, 0}});
}

/* The end of a replay that leaves no blocks, as far as growth is concerned. */
static void finish_growth(struct growth *growth, uint64_t end_ns)
{
	const struct chosen chosen = {.end_ns = end_ns, .all = true};
	struct live *live;

	assert_int_equal(live_new(&live), 0);
	assert_int_equal(growth_finish(growth, live, &chosen, 0), 0);
	live_free(live);
}

static void a_lifetime_counts_for_what_its_block_stands_for(void **state)
{
	struct growth *growth;
	uint64_t lifetime_ns;

	(void)state;
	assert_int_equal(growth_new(&growth), 0);
	for (int i = 0; i < 3; i++)
		freed(growth, 1000000, 1);
	freed(growth, 3000, 10);
	finish_growth(growth, 2ull * SECOND);
	lifetime_ns = growth_of(growth, &(uint32_t){0}, 1).lifetime_ns;
	assert_in_range(lifetime_ns, 3000 * 0.9, 3000 * 1.1);
	growth_free(growth);
}

/* Each of 2,000 changes is 1 ms after the one before: the slices are widened again and again. */
static void of_each_slice_the_most_is_known_however_wide_it_becomes(void **state)
{
	enum { NR = 2000 };
	uint64_t now = 0, sums[NR];
	struct growth *growth;
	struct growth_stack all, one;
	size_t wide;

	(void)state;
	assert_int_equal(growth_new(&growth), 0);
	for (size_t i = 0; i < NR; i++) {
		uint64_t more = i % 7 == 3 ? 1000 + i % 13 : 0 - (now > 500 ? now / 2 : 0);
		struct live_block block = {.stack = i % 3};
		struct mlk_event event = {.time_ns = SECOND + i * 1000000};

		growth_changed(growth, &(struct live_change){.sum = LIVE_OUTSTANDING,
							     .block = &block,
							     .event = &event,
							     .more = {1, more}});
		sums[i] = now += more;
	}
	finish_growth(growth, SECOND + (NR - 1) * UINT64_C(1000000));
	all = growth_of_all(growth);
	wide = growth->width_ns / 1000000;
	for (size_t at = 0; at < growth->slices; at++) {
		uint64_t most = at ? sums[at * wide - 1] : 0;

		for (size_t i = at * wide; i < (at + 1) * wide && i < NR; i++)
			most = sums[i] > most ? sums[i] : most;
		assert_int_equal(all.most[at], most);
		assert_int_equal(all.bytes[at],
				 sums[(at + 1) * wide <= NR ? (at + 1) * wide - 1 : NR - 1]);
		one = growth_of(growth, &(uint32_t){0}, 1);
		assert_true(one.most[at] >= one.bytes[at]);
	}
	growth_free(growth);
}

static void a_temporary_block_counts_for_what_it_stands_for(void **state)
{
	struct live_block block = {.tgid = MOTHER, .tid = MOTHER, .addr = 0x1000, .size = 10};
	struct mlk_event event = {.kind = MLK_FREE, .tgid = MOTHER, .tid = MOTHER};
	struct stack_stats *figures;
	struct stacks *stacks;
	struct dwunw *dw;
	uint32_t id;

	(void)state;
	assert_int_equal(dwunw_new(&dw), 0);
	assert_int_equal(stacks_new(&stacks, dw), 0);
	assert_int_equal(dwunw_stack_intern(dw, NULL, 0, DWUNW_STATUS_NO_CFI, &id), 0);
	assert_int_equal(stacks_add(stacks, id, 0, &block.stack), 0);
	assert_int_equal(stack_stats_new(&figures, stacks), 0);
	event.kind = MLK_ALLOC;
	event.addr = block.addr;
	stack_stats_event(figures, &event);
	stack_stats_changed(figures, &(struct live_change){.sum = LIVE_ALLOCATED,
							   .block = &block,
							   .event = &event,
							   .more = {10, 100}});
	event.kind = MLK_FREE;
	stack_stats_event(figures, &event);
	stack_stats_changed(figures, &(struct live_change){.sum = LIVE_FREED,
							   .block = &block,
							   .event = &event,
							   .more = {10, 100}});
	assert_int_equal(stack_stats_finish(figures), 0);
	assert_int_equal(stacks->all[block.stack].temporary, 10);
	stack_stats_free(figures);
	stacks_free(stacks);
	dwunw_free(dw);
}

static void of_a_sample_what_is_temporary_is_not_known(void **state)
{
	(void)state;
	write_trace(&plain);
	check_has(report("--folded", "--cost=temporary"), "child (200)");
	write_trace(&sampled);
	assert_null(report("--folded", "--cost=temporary"));
}

static void what_is_lost_later_makes_no_suspects(void **state)
{
	(void)state;
	write_trace(&plain);
	check_has(report("--flat", "--at=5s"), "suspect: 6 of these blocks");
	check_has_not(report("--flat", "--at=3500ms"), "suspect:");
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_several_processes_each_format_tells_which),
		cmocka_unit_test(pprof_has_processes_as_labels),
		cmocka_unit_test(of_one_process_no_format_says_more_than_before),
		cmocka_unit_test(with_pid_all_sums_are_of_it),
		cmocka_unit_test(heaptrack_has_no_events_of_what_is_not_asked_for),
		cmocka_unit_test(a_sample_stands_for_as_much_in_each_table),
		cmocka_unit_test(a_lifetime_counts_for_what_its_block_stands_for),
		cmocka_unit_test(of_each_slice_the_most_is_known_however_wide_it_becomes),
		cmocka_unit_test(a_temporary_block_counts_for_what_it_stands_for),
		cmocka_unit_test(of_a_sample_what_is_temporary_is_not_known),
		cmocka_unit_test(what_is_lost_later_makes_no_suspects),
	};

	sizes_set_exact(true); /* figures are compared with exact ones */
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
