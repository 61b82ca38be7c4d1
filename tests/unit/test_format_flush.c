/* test_format_flush.c - when a chunk of events goes to the file */
#include "format/chunk/chunk.h"
#include "format/event/events.h"
#include "format/reader.h"
#include "tests/unit/format_world.h"

#define MS  1000000ull
#define AGE (250 * MS)

/* The EVENTS chunks of a trace: how many events they have, and how many bytes before compression.
 */
struct chunks {
	uint32_t nr_records[16], raw_len[16];
	size_t nr;
};

/* End the trace of @w, which is @fd; its chunks. */
static struct chunks finish(struct mlk_writer *w, int fd)
{
	struct chunks chunks = {0};
	struct mlk_record rec;
	struct mlk_reader *r;
	struct trace t;

	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 77), 0);
	mlk_writer_free(w);
	t = slurp(fd);
	assert_int_equal(mlk_reader_open_mem(&r, t.bytes, t.len), 0);
	mlk_reader_rewind(r, MLK_RECORD_CHUNK);
	while (mlk_reader_next(r, &rec) == 1) {
		if (rec.chunk.type != MLK_CHUNK_EVENTS)
			continue;
		assert_true(chunks.nr < 16);
		chunks.raw_len[chunks.nr] = rec.chunk.raw_len;
		chunks.nr_records[chunks.nr++] = rec.chunk.nr_records;
	}
	mlk_reader_free(r);
	free(t.bytes);
	return chunks;
}

static void add(struct mlk_writer *w, int nr)
{
	const struct mlk_event event = {.kind = MLK_FREE, .tgid = 1, .tid = 1, .addr = 16};

	for (int i = 0; i < nr; i++)
		assert_int_equal(mlk_writer_event(w, &event), 0);
}

static void flush_old(struct mlk_writer *w, uint64_t ms)
{
	assert_int_equal(mlk_writer_flush_old(w, meta.start_ns + ms * MS, AGE), 0);
}

/* The first event of a chunk decides, whatever times the events have. */
static void events_wait_until_the_first_is_old(void **state)
{
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);
	struct chunks chunks;

	(void)state;
	add(w, 2); /* come since the beginning */
	flush_old(w, 100);
	add(w, 3);
	flush_old(w, 249);
	add(w, 1);
	flush_old(w, 250); /* the six */
	flush_old(w, 1000);
	add(w, 4); /* come since 1000 */
	flush_old(w, 1249);
	add(w, 1);
	flush_old(w, 1250); /* the five */
	add(w, 7);
	flush_old(w, 1499);
	chunks = finish(w, fd);
	assert_int_equal(chunks.nr, 3);
	assert_int_equal(chunks.nr_records[0], 6);
	assert_int_equal(chunks.nr_records[1], 5);
	assert_int_equal(chunks.nr_records[2], 7);
}

static void the_others_do_not_take_events_along(void **state)
{
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);
	struct chunks chunks;

	(void)state;
	add(w, 2);
	assert_int_equal(mlk_writer_flush_others(w), 0);
	add(w, 3);
	assert_int_equal(mlk_writer_flush(w), 0);
	add(w, 4);
	chunks = finish(w, fd);
	assert_int_equal(chunks.nr, 2);
	assert_int_equal(chunks.nr_records[0], 5);
	assert_int_equal(chunks.nr_records[1], 4);
}

/* Chunks become full in less than the time: none is cut short, and nothing behind one is. */
static void what_follows_a_full_chunk_is_new(void **state)
{
	struct world *world = world_new(5);
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);
	struct chunks chunks;
	struct mlk_event ev;
	uint32_t nr = 0;

	(void)state;
	for (uint64_t ms = 0; ms < 1000; ms++) {
		flush_old(w, ms);
		for (int i = 0; i < 40; i++) {
			ev = world_event(world);
			assert_int_equal(mlk_writer_event(w, &ev), 0);
		}
	}
	chunks = finish(w, fd);
	free(world);
	assert_in_range(chunks.nr, 8, 16);
	for (size_t i = 0; i < chunks.nr; i++)
		nr += chunks.nr_records[i];
	assert_int_equal(nr, 40 * 1000);
	for (size_t i = 0; i + 1 < chunks.nr; i++)
		assert_true(chunks.raw_len[i] >= MLK_EVENTS_TARGET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_wait_until_the_first_is_old),
		cmocka_unit_test(the_others_do_not_take_events_along),
		cmocka_unit_test(what_follows_a_full_chunk_is_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
