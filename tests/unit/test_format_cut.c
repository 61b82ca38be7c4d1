/* test_format_cut.c - of a trace that was cut or made at random, what is whole is read */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/chunk/chunk.h"
#include "format/chunk/codec.h"
#include "format/reader.h"
#include "tests/unit/format_world.h"

/* Read all events of @bytes and check that each is one of the world's, in order.  Returns their
 * number, or the error of opening.  *lost: chunks the reader says are lost. */
static int check_damaged(const uint8_t *bytes, size_t len, uint64_t seed, uint64_t *lost)
{
	struct world *world = world_new(seed);
	struct mlk_reader *r;
	struct mlk_record rec;
	int nr = 0, at = 0, got, err;

	err = mlk_reader_open_mem(&r, bytes, len);
	if (err) {
		assert_null(r);
		free(world);
		return err;
	}
	while ((got = mlk_reader_next(r, &rec)) == 1) {
		struct mlk_event ev;

		/* Events may be missing, never others than those that were written. */
		do {
			assert_true(at++ < MAX_EVENTS);
			ev = world_event(world);
		} while (ev.time_ns != rec.event.time_ns || ev.addr != rec.event.addr);
		assert_same_event(&ev, &rec.event, MLK_STACK_RAW);
		nr++;
	}
	assert_int_equal(got, 0);
	*lost = mlk_reader_condition(r)->chunks_lost;
	mlk_reader_free(r);
	free(world);
	return nr;
}

/* Whole chunks in the first @len bytes, and the events in them, by the lengths in their headers. */
static int whole_chunks(const uint8_t *bytes, size_t len, int *events)
{
	size_t at = MLK_FILE_HEADER;
	int nr = 0;

	*events = 0;
	while (at + MLK_CHUNK_HEADER <= len) {
		size_t next = at + MLK_CHUNK_HEADER + mlk_get_u32(bytes + at + 24);

		if (next > len)
			break;
		if (mlk_get_u16(bytes + at + 12) == MLK_CHUNK_EVENTS)
			*events += (int)mlk_get_u32(bytes + at + 72);
		nr++;
		at = next;
	}
	return nr;
}

static void a_cut_at_every_byte_leaves_the_whole_chunks(void **state)
{
	struct trace t = make_trace(5, SMALL_TRACE, 8);

	(void)state;
	for (size_t cut = 0; cut < t.len; cut++) {
		uint8_t *copy = malloc(cut + 1); /* of the exact size, for ASan */
		uint64_t lost;
		int events, chunks = whole_chunks(t.bytes, cut, &events), got;

		memcpy(copy, t.bytes, cut);
		got = check_damaged(copy, cut, 5, &lost);
		if (cut < MLK_MAGIC_LEN)
			assert_int_equal(got, MLK_E_MAGIC);
		else if (!chunks)
			assert_int_equal(got, MLK_E_EMPTY);
		else
			assert_int_equal(got, events);
		free(copy);
	}
	free(t.bytes);
}

static void random_payloads_with_right_checksums_do_no_harm(void **state)
{
	uint64_t random = 4242;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		struct mlk_header fh = {.major = 1, .len = MLK_FILE_HEADER, .salt = 9};
		struct mlk_chunk ch = {.salt = 9, .type = (uint16_t)(1 + rnd(&random) % 8)};
		uint8_t bytes[MLK_FILE_HEADER + MLK_CHUNK_HEADER + 200];
		uint8_t *payload = bytes + MLK_FILE_HEADER + MLK_CHUNK_HEADER;
		struct mlk_reader *r;
		struct mlk_record rec;
		int err;

		for (int b = 0; b < 200; b++) {
			payload[b] = (uint8_t)rnd(&random);
			if (rnd(&random) % 2)
				payload[b] &= 7;
		}
		ch.stored_len = ch.raw_len = (uint32_t)(rnd(&random) % 200);
		ch.payload_crc = mlk_crc32(payload, ch.stored_len);
		mlk_file_header_pack(bytes, &fh);
		mlk_chunk_header_pack(bytes + MLK_FILE_HEADER, &ch);
		err = mlk_reader_open_mem(&r, bytes,
					  MLK_FILE_HEADER + MLK_CHUNK_HEADER + ch.stored_len);
		assert_true(err == 0 || err == MLK_E_EMPTY);
		while (!err && mlk_reader_next(r, &rec) == 1)
			;
		mlk_reader_free(r);
	}
}

static void a_full_disk_leaves_whole_chunks(void **state)
{
	struct world *world = world_new(3);
	int fd, err = 0, events;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);
	struct trace t;
	uint64_t lost = 0;

	(void)state;
	/* A sealed memfd does not grow: write(2) fails as on a full disk, but for the errno. */
	for (int i = 0; i < 200 && !err; i++) {
		struct mlk_event ev = world_event(world);

		err = mlk_writer_event(w, &ev);
		if (!err)
			err = mlk_writer_flush(w);
		if (i == 100)
			assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	}
	assert_int_equal(err, -EPERM);
	assert_int_equal(mlk_writer_flush(w), -EPERM);
	assert_int_equal(mlk_writer_finish(w, MLK_END_ERROR, 0), -EPERM);
	mlk_writer_free(w);
	free(world);
	t = slurp(fd);
	whole_chunks(t.bytes, t.len, &events);
	assert_int_equal(check_damaged(t.bytes, t.len, 3, &lost), events);
	/* The chunk of event 100 was still on its way when the disk became full, or was not. */
	assert_in_range(events, 90, 101);
	assert_int_equal(lost, 0);
	free(t.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cut_at_every_byte_leaves_the_whole_chunks),
		cmocka_unit_test(random_payloads_with_right_checksums_do_no_harm),
		cmocka_unit_test(a_full_disk_leaves_whole_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
