/* test_report_suspect.c - which blocks of a trace may have been freed, and who is told */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/chunk/chunk.h"
#include "format/reader.h"
#include "format/writer.h"
#include "report/live/suspect_blocks.h"
#include "report/replay/replay.h"

enum { SECOND = 1000000000, PAGE = 4096 };

static const struct mlk_meta meta = {.command = "x", .comm = "x", .tgid = 42, .start_ns = SECOND};

struct trace {
	FILE *file;
	char *bytes;
	size_t len;
	struct mlk_writer *w;
	struct mlk_losses losses;
	uint64_t flushed_ns;
	uint64_t nr;
};

static void begin(struct trace *t)
{
	memset(t, 0, sizeof(*t));
	t->file = tmpfile();
	assert_non_null(t->file);
	t->flushed_ns = SECOND;
	assert_int_equal(mlk_writer_open(&t->w, fileno(t->file), &meta, 1), 0);
}

static void event(struct trace *t, enum mlk_kind kind, enum mlk_func func, uint64_t time_ns,
		  uint64_t addr)
{
	struct mlk_event e = {
		.kind = (uint8_t)kind, .tgid = 42, .tid = 42, .time_ns = time_ns, .addr = addr};

	if (kind == MLK_ALLOC) {
		e.func = (uint8_t)func;
		e.nr_regs = 17;
		e.size = func == MLK_FUNC_MMAP ? PAGE : 10;
		e.alloc_id = t->nr++;
		e.regs[MLK_SP_REG] = 0x7fff0000;
		e.regs[16] = 0x400000;
	}
	assert_int_equal(mlk_writer_event(t->w, &e), 0);
}

/* As the recorder does four times a second: @more were lost since it did so last. */
static void lose(struct trace *t, enum mlk_loss kind, uint64_t more, uint64_t now_ns)
{
	t->losses.count[kind] += more;
	t->losses.first_ns = t->flushed_ns;
	t->losses.last_ns = t->flushed_ns = now_ns;
	mlk_writer_set_losses(t->w, &t->losses);
	assert_int_equal(mlk_writer_flush(t->w), 0);
}

/* The first byte of the payload of the chunk of events that begins at @first_ns. */
static size_t payload_of(const struct trace *t, uint64_t first_ns)
{
	const struct mlk_entry *entries;
	struct mlk_reader *reader;
	size_t nr, at = 0;

	assert_int_equal(mlk_reader_open_mem(&reader, t->bytes, t->len), 0);
	assert_int_equal(mlk_reader_list(reader, &entries, &nr), 0);
	for (size_t i = 0; i < nr; i++)
		if (entries[i].records & MLK_RECORD_EVENT && entries[i].first_ns == first_ns)
			at = entries[i].offset + MLK_CHUNK_HEADER;
	mlk_reader_free(reader);
	assert_true(at > 0 && at < t->len);
	return at;
}

/* End the trace, and damage the events from @damaged_ns on (0: none); its suspects. */
static struct live_amount suspects_of(struct trace *t, uint64_t damaged_ns)
{
	struct mlk_reader *reader;
	struct live_amount found;
	struct replay *leaks;

	assert_int_equal(mlk_writer_finish(t->w, MLK_END_SIGNAL, 20ull * SECOND), 0);
	mlk_writer_free(t->w);
	t->len = (size_t)lseek(fileno(t->file), 0, SEEK_END);
	t->bytes = malloc(t->len);
	assert_non_null(t->bytes);
	assert_int_equal(pread(fileno(t->file), t->bytes, t->len, 0), t->len);
	if (damaged_ns)
		t->bytes[payload_of(t, damaged_ns)] ^= 1;
	assert_int_equal(mlk_reader_open_mem(&reader, t->bytes, t->len), 0);
	assert_int_equal(replay_collect(&leaks, reader, &(struct replay_opts){0}), 0);
	found = leaks->suspects;
	replay_free(leaks);
	mlk_reader_free(reader);
	fclose(t->file);
	free(t->bytes);
	return found;
}

static void no_loss_makes_nothing_suspect(void **state)
{
	struct trace t;

	(void)state;
	begin(&t);
	event(&t, MLK_ALLOC, MLK_FUNC_MALLOC, 2ull * SECOND, 0x1000);
	lose(&t, MLK_LOST_ALLOC, 5, 3ull * SECOND);
	lose(&t, MLK_LOST_RETURN, 5, 4ull * SECOND);
	lose(&t, MLK_LOST_RESTORE, 5, 5ull * SECOND);
	assert_int_equal(suspects_of(&t, 0).blocks, 0);
}

/* Blocks before, within and behind the time of each loss; one is freed after it. */
static void check_kind(enum mlk_loss kind, enum mlk_func hit, enum mlk_func missed)
{
	struct live_amount found;
	struct trace t;

	begin(&t);
	event(&t, MLK_ALLOC, hit, 2ull * SECOND, 0x10000);
	event(&t, MLK_ALLOC, missed, 2ull * SECOND, 0x50000);
	event(&t, MLK_ALLOC, MLK_FUNC_MALLOC, 2ull * SECOND, 0x3000);
	lose(&t, kind, 0, 3ull * SECOND);
	event(&t, MLK_ALLOC, hit, 4ull * SECOND, 0x20000);
	lose(&t, kind, 7, 5ull * SECOND);
	event(&t, MLK_ALLOC, hit, 5ull * SECOND + 1, 0x30000);
	event(&t, MLK_FREE, 0, 6ull * SECOND, 0x3000);
	lose(&t, kind, 0, 9ull * SECOND);
	lose(&t, MLK_LOST_ALLOC, 3, 10ull * SECOND);
	found = suspects_of(&t, 0);
	assert_int_equal(found.blocks, 2);
	assert_int_equal(found.bytes, hit == MLK_FUNC_MMAP ? 2 * PAGE : 20);
}

static void blocks_that_lived_while_frees_of_their_kind_were_lost_are_suspect(void **state)
{
	(void)state;
	check_kind(MLK_LOST_FREE, MLK_FUNC_MALLOC, MLK_FUNC_MMAP);
	check_kind(MLK_LOST_RELEASE, MLK_FUNC_MALLOC, MLK_FUNC_MMAP);
	check_kind(MLK_LOST_UNMAP, MLK_FUNC_MMAP, MLK_FUNC_MALLOC);
}

/* Blocks of the heap and a mapping, then a loss of @kind, then another block: how many are suspect?
 */
static uint64_t suspects_after(enum mlk_loss kind)
{
	struct trace t;

	begin(&t);
	event(&t, MLK_ALLOC, MLK_FUNC_MALLOC, 2ull * SECOND, 0x10000);
	event(&t, MLK_ALLOC, MLK_FUNC_MMAP, 2ull * SECOND, 0x50000);
	lose(&t, kind, 1, 3ull * SECOND);
	event(&t, MLK_ALLOC, MLK_FUNC_MALLOC, 4ull * SECOND, 0x20000);
	return suspects_of(&t, 0).blocks;
}

static void a_lost_notice_of_exec_makes_all_before_it_suspect(void **state)
{
	(void)state;
	assert_int_equal(suspects_after(MLK_LOST_NOTICE), 2);
}

static void a_program_that_was_not_recorded_makes_nothing_suspect(void **state)
{
	(void)state;
	assert_int_equal(suspects_after(MLK_LOST_EXEC), 0);
}

static void older_writers_count_lost_notices_with_programs(void **state)
{
	struct mlk_losses losses = {
		.nr_kinds = MLK_LOST_NOTICE, .first_ns = 2ull * SECOND, .last_ns = 3ull * SECOND};
	struct suspect_blocks s = {0};
	uint64_t from_ns, to_ns;

	(void)state;
	losses.count[MLK_LOST_EXEC] = 1;
	suspect_blocks_read(&s, &losses);
	assert_true(suspect_blocks_times(&s, &from_ns, &to_ns));
	s = (struct suspect_blocks){0};
	losses.nr_kinds++;
	suspect_blocks_read(&s, &losses);
	assert_false(suspect_blocks_times(&s, &from_ns, &to_ns));
}

static void the_times_of_all_losses_of_frees_are_told(void **state)
{
	struct mlk_losses losses = {.first_ns = 2ull * SECOND, .last_ns = 3ull * SECOND};
	struct suspect_blocks s = {0};
	uint64_t from_ns, to_ns;

	(void)state;
	losses.count[MLK_LOST_ALLOC] = 4;
	suspect_blocks_read(&s, &losses);
	assert_false(suspect_blocks_times(&s, &from_ns, &to_ns));
	losses.first_ns = 5ull * SECOND;
	losses.last_ns = 6ull * SECOND;
	losses.count[MLK_LOST_FREE] = 1;
	suspect_blocks_read(&s, &losses);
	losses.first_ns = 8ull * SECOND;
	losses.last_ns = 9ull * SECOND;
	losses.count[MLK_LOST_UNMAP] = 1;
	suspect_blocks_read(&s, &losses);
	assert_true(suspect_blocks_times(&s, &from_ns, &to_ns));
	assert_int_equal(from_ns, 5ull * SECOND);
	assert_int_equal(to_ns, 9ull * SECOND);
	/* and one of which no time is known */
	suspect_blocks_finish(&s, &(struct mlk_condition){.losses.count[MLK_LOST_FREE] = 2});
	assert_false(suspect_blocks_times(&s, &from_ns, &to_ns));
}

/* A chunk's header tells of it, and the record that says when is damaged. */
static void without_the_time_of_a_loss_all_are_suspect(void **state)
{
	const struct mlk_condition c = {.losses.count[MLK_LOST_FREE] = 1};
	const struct live_block block = {.time_ns = 4ull * SECOND};
	struct suspect_blocks s = {0};

	(void)state;
	suspect_blocks_read(&s, &(struct mlk_losses){.last_ns = 3ull * SECOND});
	assert_false(suspect_blocks_is(&s, &block));
	suspect_blocks_finish(&s, &c);
	assert_true(suspect_blocks_is(&s, &block));
}

/* The chunk between the two is lost, and who knows what it freed. */
static void blocks_older_than_a_damaged_chunk_are_suspect(void **state)
{
	struct trace t;

	(void)state;
	begin(&t);
	event(&t, MLK_ALLOC, MLK_FUNC_MALLOC, 2ull * SECOND, 0x10000);
	lose(&t, MLK_LOST_ALLOC, 1, 3ull * SECOND);
	event(&t, MLK_ALLOC, MLK_FUNC_MALLOC, 4ull * SECOND, 0x20000);
	event(&t, MLK_FREE, 0, 4ull * SECOND, 0x10000);
	assert_int_equal(mlk_writer_flush(t.w), 0);
	lose(&t, MLK_LOST_ALLOC, 1, 4ull * SECOND + 1);
	event(&t, MLK_ALLOC, MLK_FUNC_MALLOC, 6ull * SECOND, 0x30000);
	assert_int_equal(suspects_of(&t, 4ull * SECOND).blocks, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_loss_makes_nothing_suspect),
		cmocka_unit_test(blocks_that_lived_while_frees_of_their_kind_were_lost_are_suspect),
		cmocka_unit_test(a_lost_notice_of_exec_makes_all_before_it_suspect),
		cmocka_unit_test(a_program_that_was_not_recorded_makes_nothing_suspect),
		cmocka_unit_test(older_writers_count_lost_notices_with_programs),
		cmocka_unit_test(the_times_of_all_losses_of_frees_are_told),
		cmocka_unit_test(without_the_time_of_a_loss_all_are_suspect),
		cmocka_unit_test(blocks_older_than_a_damaged_chunk_are_suspect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
