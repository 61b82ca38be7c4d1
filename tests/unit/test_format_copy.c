/* test_format_copy.c - a copy of a trace that is still being written */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/copy.h"
#include "format/reader.h"
#include "format/writer.h"

#define NR_CHUNKS 3

/* So many chunks of an event each, at 11, 12 and so on; without END. */
static uint8_t *make_trace(size_t *len)
{
	const struct mlk_meta meta = {.tgid = 42, .start_ns = 1};
	struct mlk_writer *w;
	FILE *file = tmpfile();
	uint8_t *bytes;

	assert_non_null(file);
	assert_int_equal(mlk_writer_open(&w, fileno(file), &meta, 1), 0);
	for (uint64_t i = 0; i < NR_CHUNKS; i++) {
		const struct mlk_event free = {.kind = MLK_FREE,
					       .tgid = 42,
					       .tid = 42,
					       .time_ns = 11 + i,
					       .addr = 4096 * i};

		assert_int_equal(mlk_writer_event(w, &free), 0);
		assert_int_equal(mlk_writer_flush(w), 0);
	}
	mlk_writer_free(w);
	*len = (size_t)lseek(fileno(file), 0, SEEK_END);
	bytes = malloc(*len);
	assert_non_null(bytes);
	assert_int_equal(pread(fileno(file), bytes, *len, 0), *len);
	fclose(file);
	return bytes;
}

/* What mlk_copy_so_far() makes of the trace @bytes: how many events, when it ended, and why. */
static int copy_so_far(const uint8_t *bytes, size_t len, unsigned int *nr,
		       struct mlk_condition *condition)
{
	struct mlk_record record;
	struct mlk_reader *r;
	struct mlk_copy *copy;
	FILE *file = tmpfile();
	int err;

	assert_non_null(file);
	assert_int_equal(mlk_reader_open_mem(&r, bytes, len), 0);
	assert_int_equal(mlk_copy_new(&copy, r, fileno(file), 1, MLK_COPY_ALL), 0);
	err = mlk_copy_so_far(copy);
	mlk_copy_free(copy);
	mlk_reader_free(r);
	*nr = 0;
	if (!err) {
		assert_int_equal(mlk_reader_open_fd(&r, dup(fileno(file))), 0);
		mlk_reader_rewind(r, MLK_RECORD_ALL);
		while (mlk_reader_next(r, &record) > 0)
			*nr += record.type == MLK_RECORD_EVENT;
		*condition = *mlk_reader_condition(r);
		mlk_reader_free(r);
	}
	fclose(file);
	return err;
}

static void it_has_an_end_after_what_is_whole(void **state)
{
	struct mlk_condition condition;
	unsigned int nr;
	size_t len;
	uint8_t *bytes = make_trace(&len);

	(void)state;
	/* all, and then without the last byte of the last chunk */
	for (unsigned int cut = 0; cut < 2; cut++) {
		assert_int_equal(copy_so_far(bytes, len - cut, &nr, &condition), 0);
		assert_int_equal(nr, NR_CHUNKS - cut);
		assert_true(condition.ended);
		assert_int_equal(condition.reason, MLK_END_COPIED);
		assert_int_equal(condition.end_ns, 10 + NR_CHUNKS - cut);
		assert_int_equal(condition.chunks_lost, 0);
		assert_int_equal(condition.bytes_skipped, 0);
	}
	free(bytes);
}

static void what_is_missing_is_not_hidden(void **state)
{
	struct mlk_condition condition;
	const struct mlk_entry *entries;
	struct mlk_reader *r;
	unsigned int nr;
	size_t len, nr_entries;
	uint8_t *bytes = make_trace(&len);

	(void)state;
	assert_int_equal(mlk_reader_open_mem(&r, bytes, len), 0);
	assert_int_equal(mlk_reader_list(r, &entries, &nr_entries), 0);
	assert_true(nr_entries > 2);
	bytes[entries[nr_entries - 2].offset] ^= 1;
	mlk_reader_free(r);
	assert_int_equal(copy_so_far(bytes, len, &nr, &condition), MLK_E_CORRUPT);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_has_an_end_after_what_is_whole),
		cmocka_unit_test(what_is_missing_is_not_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
