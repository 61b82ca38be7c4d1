/* test_report_leaks.c - from a trace file to the summary of its report */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include <cmocka.h>

#include "format/writer.h"
#include "report/base/sizes.h"
#include "report/replay/replay.h"
#include "report/text/print_summary.h"
#include "report/text/print_tree.h"

static const struct mlk_meta meta = {
	.command = "/bin/leaky\x1b[2J -x",
	.exe = "/bin/leaky",
	.comm = "",
	.hostname = "host",
	.kernel = "6.18",
	.machine = "x86_64",
	.recorder = "test",
	.backend = "test",
	.tgid = 42,
	.start_ns = 1000000000,
};

static void send(struct mlk_writer *w, enum mlk_kind kind, uint64_t addr, uint64_t size)
{
	static const uint8_t stack[64];
	struct mlk_event event = {.kind = (uint8_t)kind, .tgid = 42, .tid = 42, .addr = addr};

	event.time_ns = 1500000000;
	if (kind == MLK_ALLOC) {
		event.func = MLK_FUNC_MALLOC;
		event.nr_regs = 17;
		event.size = size;
		event.alloc_id = addr;
		event.regs[MLK_SP_REG] = 0x7fff0000;
		event.regs[16] = 0x400000 + size;
		event.stack = stack;
		event.stack_len = sizeof(stack);
	}
	assert_int_equal(mlk_writer_event(w, &event), 0);
}

static void write_layout(struct mlk_writer *w)
{
	struct mlk_mapping mapping = {
		.start = 0x400000,
		.end = 0x500000,
		.offset = 0x1000,
		.perms = MLK_PERM_R | MLK_PERM_X,
		.id = {.len = 2, .bytes = {MLK_ID_BUILD_ID, 1}},
		.path = "/bin/leaky",
	};
	struct mlk_maps maps = {.tgid = 42, .time_ns = 1, .nr = 1, .mappings = &mapping};
	struct mlk_thread threads[] = {{42, 43, "worker"}, {42, 42, "leaky-main"}};

	assert_int_equal(mlk_writer_maps(w, &maps), 0);
	assert_int_equal(mlk_writer_threads(w, threads, 2), 0);
	assert_int_equal(mlk_writer_module(w, &mapping.id, mapping.path, NULL, 0), 0);
}

/* 23 blocks of 47 bytes are leaked, 1000 freed, 1 from before is freed, 2 frees are lost. */
static void write_trace(const char *path)
{
	struct mlk_losses losses = {0};
	struct mlk_writer *w;
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(mlk_writer_open(&w, fileno(file), &meta, 1), 0);
	write_layout(w);
	for (uint64_t i = 0; i < 1000; i++) {
		send(w, MLK_ALLOC, 0x10000 + i % 10 * 64, 10);
		send(w, MLK_FREE, 0x10000 + i % 10 * 64, 0);
	}
	for (uint64_t i = 0; i < 23; i++)
		send(w, MLK_ALLOC, 0x20000 + i * 64, 47);
	send(w, MLK_FREE, 0x30000, 0);
	losses.count[MLK_LOST_FREE] = 2;
	mlk_writer_set_losses(w, &losses);
	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 2234567890), 0);
	mlk_writer_free(w);
	fclose(file);
}

static struct replay *collect(const char *path, struct mlk_reader **trace)
{
	struct replay *leaks;

	assert_int_equal(mlk_reader_open_file(trace, path), 0);
	assert_int_equal(replay_collect(&leaks, *trace, &(struct replay_opts){0}), 0);
	return leaks;
}

static int make_trace(void **state)
{
	char *path = strdup("/tmp/test_report_leaks.XXXXXX");
	int fd = mkstemp(path);

	if (fd < 0)
		return -1;
	close(fd);
	write_trace(path);
	*state = path;
	return 0;
}

static int remove_trace(void **state)
{
	int err = unlink(*state);

	free(*state);
	return err;
}

static void a_trace_gives_its_leaks(void **state)
{
	struct mlk_reader *trace;
	struct replay *leaks = collect(*state, &trace);
	const struct live_totals *totals = &leaks->totals;
	uint64_t unwound = 0, bytes = 0;

	assert_int_equal(totals->allocated.blocks, 1023);
	assert_int_equal(totals->freed.blocks, 1000);
	assert_int_equal(totals->outstanding.blocks, 23);
	assert_int_equal(totals->outstanding.bytes, 1081);
	assert_int_equal(totals->unknown_frees, 1);
	assert_string_equal(leaks->comm, "leaky-main");
	assert_string_equal(replay_missing(leaks, 0), "/bin/leaky");
	assert_null(replay_missing(leaks, 1));
	assert_int_equal(leaks->stacks->nr, 2);
	for (uint32_t i = 0; i < 2; i++)
		bytes += leaks->stacks->all[i].bytes;
	assert_int_equal(bytes, 1081);
	for (int status = 0; status < DWUNW_STATUS_NR; status++)
		unwound += leaks->status_counts[(enum dwunw_status)status];
	assert_int_equal(unwound, 1023);
	assert_true(leaks->condition.ended);
	replay_free(leaks);
	mlk_reader_free(trace);
}

static void what_is_counted_later_does_not_move_the_end(void **state)
{
	struct mlk_losses losses = {.first_ns = meta.start_ns, .last_ns = 4234567890};
	FILE *file = tmpfile();
	struct mlk_reader *trace;
	struct mlk_writer *w;
	struct replay *leaks;

	(void)state;
	assert_non_null(file);
	assert_int_equal(mlk_writer_open(&w, fileno(file), &meta, 1), 0);
	write_layout(w);
	send(w, MLK_ALLOC, 0x10000, 10);
	losses.count[MLK_LOST_ALLOC] = 1;
	mlk_writer_set_losses(w, &losses);
	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 2234567890), 0);
	mlk_writer_free(w);
	assert_int_equal(mlk_reader_open_fd(&trace, dup(fileno(file))), 0);
	assert_int_equal(replay_collect(&leaks, trace, &(struct replay_opts){0}), 0);
	assert_int_equal(leaks->condition.last_ns, 4234567890);
	assert_int_equal(leaks->chosen.end_ns, 2234567890);
	replay_free(leaks);
	mlk_reader_free(trace);
	fclose(file);
}

static void the_summary_says_what_was_recorded_and_lost(void **state)
{
	struct mlk_reader *trace;
	struct replay *leaks = collect(*state, &trace);
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	static const char expected[] =
		"trace 'x\\x0A.mlk': /bin/leaky\\x1B[2J -x (pid 42), 1.235 s on host, Linux 6.18 "
		"x86_64\n"
		"  allocations      1,023 blocks           11,081 bytes\n"
		"  frees            1,000 blocks           10,000 bytes\n"
		"  older blocks         1  freed, but allocated before the recording\n"
		"  outstanding         23 blocks            1,081 bytes\n"
		"    suspect: 23 of these blocks (1,081 bytes) lived while frees were lost: they "
		"may "
		"have been freed\n"
		"    frees were lost between 0.000 and 0.500 s: blocks allocated later are not "
		"suspect\n"
		"  net                +22 blocks           +1,081 bytes, less 1 older block of "
		"unknown size\n"
		"  lost events          2\n"
		"    frees: 2\n"
		"    2 frees were lost: up to 2 of the outstanding blocks may not be leaks\n"
		"  complete stacks ";

	assert_non_null(out);
	assert_int_equal(print_summary(out, "x\n.mlk", mlk_reader_meta(trace), leaks, true), 0);
	assert_int_equal(fclose(out), 0);
	assert_true(len > strlen(expected));
	text[strlen(expected)] = '\0';
	assert_string_equal(text, expected);
	free(text);
	replay_free(leaks);
	mlk_reader_free(trace);
}

/* The trace has no image of /bin/leaky. */
static void a_place_in_an_absent_module_is_told_by_its_offset(void **state)
{
	const struct view_opts opts = {.addresses = true};
	struct mlk_reader *trace;
	struct replay *leaks = collect(*state, &trace);
	struct symbols_source source = {.dw = leaks->dw, .images = leaks->images};
	struct view *view;
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(view_new(&view, leaks->stacks, &source, &opts), 0);
	assert_int_equal(print_view_as_tree(out, view, "callers first", NULL), 0);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "          23  leaky+0x102f  [suspect: 23 of 23]\n"));
	free(text);
	view_free(view);
	replay_free(leaks);
	mlk_reader_free(trace);
}

/* What a cut or a flipped bit makes of a trace is the reader's matter; here it must not crash. */
static void damaged_traces_are_survived(void **state)
{
	static char bytes[1 << 20], copy[1 << 20];
	FILE *in = fopen(*state, "rb");
	unsigned int seed = 1;
	size_t len;

	assert_non_null(in);
	len = fread(bytes, 1, sizeof(bytes), in);
	assert_true(len > 100 && len < sizeof(bytes));
	fclose(in);
	for (int i = 0; i < 300; i++) {
		size_t cut = i % 2 ? len : (unsigned int)rand_r(&seed) % len;
		struct mlk_reader *trace;
		struct replay *leaks;

		memcpy(copy, bytes, len);
		if (i % 2)
			copy[(unsigned int)rand_r(&seed) % len] ^= (char)(1 << i / 2 % 8);
		if (mlk_reader_open_mem(&trace, copy, cut))
			continue;
		assert_int_equal(replay_collect(&leaks, trace, &(struct replay_opts){0}), 0);
		replay_free(leaks);
		mlk_reader_free(trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trace_gives_its_leaks),
		cmocka_unit_test(what_is_counted_later_does_not_move_the_end),
		cmocka_unit_test(the_summary_says_what_was_recorded_and_lost),
		cmocka_unit_test(a_place_in_an_absent_module_is_told_by_its_offset),
		cmocka_unit_test(damaged_traces_are_survived),
	};

	sizes_set_exact(true); /* figures are compared with exact ones */
	return cmocka_run_group_tests(tests, make_trace, remove_trace);
}
