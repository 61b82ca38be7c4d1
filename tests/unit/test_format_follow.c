/* test_format_follow.c - a trace that is read while it is written, by a file or through a pipe */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/chunk/chunk.h"
#include "format/reader.h"
#include "tests/unit/format_world.h"

#define SEED   11
#define EVENTS 300
#define CHUNK  7

/* What came of a trace so far, held against the world that it is of. */
struct follower {
	struct mlk_reader *trace;
	struct world *world;
	int nr;
};

static void begin(struct follower *f)
{
	f->world = world_new(SEED);
	f->nr = 0;
	mlk_reader_rewind(f->trace, MLK_RECORD_EVENT);
}

/* Take what is there now. */
static void take(struct follower *f)
{
	struct mlk_record rec;
	int more;

	while ((more = mlk_reader_next(f->trace, &rec)) > 0) {
		struct mlk_event event = world_event(f->world);

		assert_same_event(&event, &rec.event, MLK_STACK_RAW);
		f->nr++;
	}
	assert_int_equal(more, 0);
}

/* All came, and nothing was taken for damage on the way. */
static void end(struct follower *f)
{
	const struct mlk_condition *c = mlk_reader_condition(f->trace);

	assert_int_equal(f->nr, EVENTS);
	assert_int_equal(c->chunks_lost, 0);
	assert_int_equal(c->bytes_skipped, 0);
	assert_true(c->ended);
	mlk_reader_free(f->trace);
	free(f->world);
}

static void open_at(struct follower *f, int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(mlk_reader_open_file(&f->trace, path), 0);
	assert_int_equal(mlk_reader_follow(f->trace, false), 0);
	begin(f);
}

/* Append the bytes of @t from *@at on, so many of them as are there. */
static void append(int fd, const struct trace *t, size_t *at, size_t len)
{
	if (len > t->len - *at)
		len = t->len - *at;
	assert_int_equal(write(fd, t->bytes + *at, len), len);
	*at += len;
}

static void a_file_that_grows_by_any_pieces_gives_all_events(void **state)
{
	struct trace t = make_trace(SEED, EVENTS, CHUNK);
	uint64_t random = 99;
	struct follower f;
	size_t at = 0;
	int fd = memfd_create("growing", 0);

	(void)state;
	append(fd, &t, &at, 2000);
	open_at(&f, fd);
	while (at < t.len) {
		append(fd, &t, &at, 1 + rnd(&random) % 3000);
		assert_int_equal(mlk_reader_follow(f.trace, at == t.len), 0);
		take(&f);
	}
	end(&f);
	close(fd);
	free(t.bytes);
}

static void a_piece_of_a_chunk_is_waited_for_until_there_will_be_no_more(void **state)
{
	struct trace t = make_trace(SEED, EVENTS, CHUNK);
	struct follower f;
	size_t at = 0;
	int fd = memfd_create("cut", 0);

	(void)state;
	append(fd, &t, &at, t.len - 10);
	open_at(&f, fd);
	take(&f);
	assert_int_equal(f.nr, EVENTS);
	assert_int_equal(mlk_reader_condition(f.trace)->bytes_skipped, 0);
	assert_int_equal(mlk_reader_follow(f.trace, true), 0);
	take(&f);
	assert_true(mlk_reader_condition(f.trace)->bytes_skipped > 0);
	assert_false(mlk_reader_condition(f.trace)->ended);
	mlk_reader_free(f.trace);
	free(f.world);
	close(fd);
	free(t.bytes);
}

static void damage_is_stepped_over_also_at_the_end_of_what_is_there(void **state)
{
	struct trace t = make_trace(SEED, EVENTS, CHUNK);
	uint8_t *second = memmem(t.bytes + 200, t.len - 200, mlk_chunk_magic, MLK_MAGIC_LEN);
	size_t from = (size_t)(second - t.bytes), at = 0;
	struct mlk_record rec;
	struct follower f;
	int fd = memfd_create("damaged", 0), nr = 0;

	(void)state;
	second[3] ^= 1; /* no chunk begins there any more */
	append(fd, &t, &at, from + 1);
	open_at(&f, fd);
	while (at < t.len) {
		append(fd, &t, &at, 5);
		assert_int_equal(mlk_reader_follow(f.trace, at == t.len), 0);
		while (mlk_reader_next(f.trace, &rec) > 0)
			nr++;
	}
	assert_int_equal(nr, EVENTS - CHUNK);
	assert_int_equal(mlk_reader_condition(f.trace)->chunks_lost, 1);
	assert_true(mlk_reader_condition(f.trace)->ended);
	mlk_reader_free(f.trace);
	free(f.world);
	close(fd);
	free(t.bytes);
}

struct feeder {
	struct trace t;
	int fd;
};

static void *feed(void *arg)
{
	const struct feeder *feeder = arg;
	uint64_t random = 7;

	for (size_t at = 0; at < feeder->t.len;)
		append(feeder->fd, &feeder->t, &at, 1 + rnd(&random) % 5000);
	close(feeder->fd);
	return NULL;
}

static void a_stream_gives_all_events_and_forgets_those_behind(void **state)
{
	struct feeder feeder = {.t = make_trace(SEED, EVENTS, CHUNK)};
	struct follower f;
	pthread_t thread;
	bool last = false;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	feeder.fd = fds[1];
	assert_int_equal(pthread_create(&thread, NULL, feed, &feeder), 0);
	assert_int_equal(mlk_reader_open_stream(&f.trace, fds[0]), 0);
	assert_string_equal(mlk_reader_meta(f.trace)->comm, "server");
	begin(&f);
	while (!last) {
		last = mlk_reader_stream_ended(f.trace);
		assert_int_equal(mlk_reader_follow(f.trace, last), 0);
		take(&f);
		mlk_reader_forget(f.trace, mlk_reader_offset(f.trace));
	}
	pthread_join(thread, NULL);
	end(&f);
	close(fds[0]);
	free(feeder.t.bytes);
}

static void a_clone_reads_chunks_of_a_stream_that_are_kept(void **state)
{
	struct feeder feeder = {.t = make_trace(SEED, 20, 20)};
	struct mlk_entry events = {0};
	struct mlk_reader *trace, *clone;
	struct mlk_record rec;
	int fds[2], nr = 0;
	size_t at = 0;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_true(feeder.t.len < 65536);
	append(fds[1], &feeder.t, &at, feeder.t.len);
	close(fds[1]);
	assert_int_equal(mlk_reader_open_stream(&trace, fds[0]), 0);
	assert_int_equal(mlk_reader_follow(trace, false), 0);
	mlk_reader_rewind(trace, MLK_RECORD_CHUNK);
	while (mlk_reader_next(trace, &rec) > 0)
		if (rec.chunk.records == MLK_RECORD_EVENT)
			events = (struct mlk_entry){
				.offset = rec.chunk.offset,
				.records = rec.chunk.records,
				.type = rec.chunk.type,
				.seq = rec.chunk.seq,
				.first_ns = rec.chunk.first_ns,
				.last_ns = rec.chunk.last_ns,
				.nr_records = rec.chunk.nr_records,
			};
	assert_int_equal(mlk_reader_clone(&clone, trace), 0);
	assert_int_equal(mlk_reader_follow(clone, false), 0);
	mlk_reader_forget(trace, events.offset);
	assert_int_equal(mlk_reader_seek(clone, &events, MLK_RECORD_EVENT), 0);
	while (mlk_reader_next(clone, &rec) > 0)
		nr++;
	assert_int_equal(nr, 20);
	mlk_reader_forget(trace, events.offset + 1);
	assert_int_equal(mlk_reader_seek(clone, &events, MLK_RECORD_EVENT), MLK_E_CORRUPT);
	mlk_reader_free(clone);
	mlk_reader_free(trace);
	close(fds[0]);
	free(feeder.t.bytes);
}

static void what_is_no_trace_is_refused(void **state)
{
	struct mlk_reader *trace;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "hello", 5), 5);
	close(fds[1]);
	assert_int_equal(mlk_reader_open_stream(&trace, fds[0]), MLK_E_MAGIC);
	assert_null(trace);
	close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_grows_by_any_pieces_gives_all_events),
		cmocka_unit_test(a_piece_of_a_chunk_is_waited_for_until_there_will_be_no_more),
		cmocka_unit_test(damage_is_stepped_over_also_at_the_end_of_what_is_there),
		cmocka_unit_test(a_stream_gives_all_events_and_forgets_those_behind),
		cmocka_unit_test(a_clone_reads_chunks_of_a_stream_that_are_kept),
		cmocka_unit_test(what_is_no_trace_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
