/* test_report_results.c - results of a replay that are read back: how deep their stacks may be */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "format/unwound.h"
#include "format/writer.h"
#include "report/replay/results.h"

/* A replay of a trace without events. */
static struct replay *replay_of(struct mlk_reader **reader)
{
	const struct mlk_meta meta = {.tgid = 42, .start_ns = 1};
	const struct replay_opts opts = {0};
	struct replay *leaks;
	struct mlk_writer *w;
	int fd = memfd_create("trace", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(mlk_writer_open(&w, fd, &meta, 1), 0);
	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 1000), 0);
	mlk_writer_free(w);
	assert_int_equal(mlk_reader_open_fd(reader, fd), 0);
	assert_int_equal(replay_new(&leaks, *reader, &opts), 0);
	return leaks;
}

/* Results with one block, of a stack of @depth frames. */
static void save_deep(struct save *results, unsigned int depth)
{
	struct mlk_event event = {.kind = MLK_ALLOC, .tgid = 42, .tid = 42, .addr = 0x1000};
	struct mlk_reader *reader;
	struct replay *leaks = replay_of(&reader);
	uint32_t id;

	assert_int_equal(dwunw_stack_intern(leaks->dw, NULL, 0, DWUNW_STATUS_ENDED, &id), 0);
	for (unsigned int i = 0; i < depth; i++) {
		const struct dwunw_frame frame = {
			.pc = 0x1000 + i, .addr = 0x1000 + i, .module = DWUNW_NO_MODULE};

		assert_int_equal(dwunw_stack_add(leaks->dw, id, &frame, &id), 0);
	}
	event.size = 47;
	event.time_ns = 10;
	assert_int_equal(replay_event(leaks, &event, id), 0);
	live_finish(leaks->live);
	assert_int_equal(stack_stats_finish(leaks->figures), 0);
	results_save(leaks, NULL, results);
	assert_false(results->failed);
	replay_free(leaks);
	mlk_reader_free(reader);
}

/* What it is to read the results with a stack of @depth frames. */
static int load_deep(unsigned int depth)
{
	struct save results = {0};
	struct mlk_reader *reader;
	struct replay *leaks = replay_of(&reader);
	int err;

	save_deep(&results, depth);
	err = results_load(leaks, NULL,
			   (struct load){results.bytes, results.bytes + results.len, false});
	if (!err)
		assert_int_equal(leaks->stacks->nr, 1);
	save_release(&results);
	replay_free(leaks);
	mlk_reader_free(reader);
	return err;
}

static void a_stack_is_as_deep_as_one_that_was_unwound(void **state)
{
	(void)state;
	assert_int_equal(load_deep(1), 0);
	assert_int_equal(load_deep(MLK_MAX_FRAMES), 0);
	assert_int_equal(load_deep(MLK_MAX_FRAMES + 1), MLK_E_CORRUPT);
	/* also where a count of 16 bits would begin again */
	assert_int_equal(load_deep(UINT16_MAX + 2), MLK_E_CORRUPT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_is_as_deep_as_one_that_was_unwound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
