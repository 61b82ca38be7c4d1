/* test_format_index.c - chunks by a list, that an index may make shorter work of but never another
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include <cmocka.h>

#include "format/chunk/chunk.h"
#include "format/chunk/codec.h"
#include "format/reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/format_world.h"

#define A_CHUNK 25

/* The places of the chunks of @type, by their headers; returns how many. */
static size_t find_chunks(const struct trace *t, unsigned int type, size_t *places)
{
	size_t nr = 0;

	for (size_t at = MLK_FILE_HEADER; at < t->len;
	     at += MLK_CHUNK_HEADER + mlk_get_u32(t->bytes + at + 24))
		if (mlk_get_u16(t->bytes + at + 12) == type)
			places[nr++] = at;
	return nr;
}

static struct mlk_reader *open_trace(const struct trace *t)
{
	struct mlk_reader *r;

	assert_int_equal(mlk_reader_open_mem(&r, t->bytes, t->len), 0);
	return r;
}

static size_t list(struct mlk_reader *r, const struct mlk_entry **entries)
{
	size_t nr;

	assert_int_equal(mlk_reader_list(r, entries, &nr), 0);
	return nr;
}

static uint64_t digest(const struct mlk_event *ev, uint64_t before)
{
	uint64_t sums[4] = {before, ev->time_ns, ev->addr,
			    ev->stack_len ? mlk_crc32(ev->stack, ev->stack_len) : 0};

	return mlk_crc32(sums, sizeof(sums)) | (uint64_t)mlk_crc32(ev->regs, sizeof(ev->regs))
						       << 32;
}

/* A digest of all events that come now, and how many there were. */
static uint64_t read_events(struct mlk_reader *r, uint64_t *nr)
{
	struct mlk_record rec;
	uint64_t sum = 0;
	int got;

	for (*nr = 0; (got = mlk_reader_next(r, &rec)) == 1; ++*nr)
		sum = digest(&rec.event, sum);
	assert_int_equal(got, 0);
	return sum;
}

/* Chunk after chunk, backwards, each says what it says in the whole. */
static void each_chunk_reads_alone(void **state)
{
	struct trace t = make_mode_trace(7, 1000, A_CHUNK, MLK_STACK_FILTERED);
	struct mlk_reader *r = open_trace(&t), *whole = open_trace(&t);
	uint64_t sums[64] = {0}, got, all;
	const struct mlk_entry *entries;
	struct mlk_record rec;
	size_t nr = list(r, &entries), at = 0;

	(void)state;
	assert_in_range(nr, 40, 64);
	mlk_reader_rewind(whole, MLK_RECORD_EVENT | MLK_RECORD_CHUNK);
	while (mlk_reader_next(whole, &rec) == 1) {
		if (rec.type == MLK_RECORD_EVENT) {
			sums[at] = digest(&rec.event, sums[at]);
			continue;
		}
		while (at < nr && entries[at].offset < rec.chunk.offset)
			at++;
		if (rec.chunk.type == MLK_CHUNK_INDEX)
			continue;
		assert_true(at < nr && entries[at].offset == rec.chunk.offset);
		assert_int_equal(entries[at].records, rec.chunk.records);
		assert_true(entries[at].first_ns == rec.chunk.first_ns &&
			    entries[at].last_ns == rec.chunk.last_ns);
		assert_int_equal(entries[at].nr_records, rec.chunk.nr_records);
	}
	for (size_t i = nr, events = 0; i-- > 0; events += (size_t)got) {
		assert_int_equal(mlk_reader_seek(r, &entries[i], MLK_RECORD_EVENT), 0);
		assert_true(read_events(r, &got) == sums[i]);
		assert_true(i || events + got == 1000);
	}
	mlk_reader_rewind(r, MLK_RECORD_EVENT); /* and all again */
	read_events(r, &all);
	assert_int_equal(all, 1000);
	mlk_reader_free(r);
	mlk_reader_free(whole);
	free(t.bytes);
}

static void without_an_index_the_list_is_the_same(void **state)
{
	struct trace t = make_mode_trace(8, 1000, A_CHUNK, MLK_STACK_RAW);
	struct mlk_reader *with = open_trace(&t), *without;
	const struct mlk_entry *a, *b;
	size_t place, nr = list(with, &a);

	(void)state;
	assert_int_equal(find_chunks(&t, MLK_CHUNK_INDEX, &place), 1);
	for (int damage = 0; damage < 4; damage++) {
		struct trace hit = {malloc(t.len), t.len};

		assert_non_null(hit.bytes);
		memcpy(hit.bytes, t.bytes, t.len);
		if (damage == 0)
			hit.bytes[place] ^= 1; /* its magic */
		else if (damage == 1)
			hit.bytes[place + MLK_CHUNK_HEADER] ^= 1; /* its payload */
		else if (damage == 2)
			hit.bytes[t.len - 1] ^= 1; /* where it is */
		else
			hit.len = place; /* not there */
		without = open_trace(&hit);
		/* END, the last one, lies behind a cut. */
		assert_int_equal(list(without, &b), damage == 3 ? nr - 1 : nr);
		assert_memory_equal(a, b, (nr - 1) * sizeof(*a));
		mlk_reader_free(without);
		free(hit.bytes);
	}
	mlk_reader_free(with);
	free(t.bytes);
}

/* So it is used: looking at the headers, that chunk would not be found. */
static void a_chunk_that_is_listed_and_damaged_is_refused(void **state)
{
	struct trace t = make_mode_trace(9, 200, A_CHUNK, MLK_STACK_RAW);
	const struct mlk_entry *entries;
	struct mlk_reader *r;
	struct mlk_entry hit;
	size_t places[16], nr;

	(void)state;
	assert_int_equal(find_chunks(&t, MLK_CHUNK_EVENTS, places), 8);
	t.bytes[places[3]] ^= 1;
	r = open_trace(&t);
	nr = list(r, &entries);
	for (hit = entries[0]; hit.offset != places[3]; hit = *++entries)
		assert_true(hit.offset < places[3]);
	assert_int_equal(mlk_reader_seek(r, &hit, MLK_RECORD_ALL), MLK_E_CORRUPT);
	assert_int_equal(mlk_reader_next(r, &(struct mlk_record){0}), 0);
	assert_int_equal(list(r, &entries), nr - 1);
	for (size_t i = 0; i < nr - 1; i++)
		assert_int_equal(mlk_reader_seek(r, &entries[i], 0), 0);
	mlk_reader_free(r);
	free(t.bytes);
}

/* Make the checksums of the chunk at @place right again. */
static void seal(struct trace *t, size_t place)
{
	uint8_t *h = t->bytes + place;

	assert_int_equal(mlk_get_u16(h + 14), 0); /* not compressed */
	mlk_put_u32(h + 76, mlk_crc32(h + MLK_CHUNK_HEADER, mlk_get_u32(h + 24)));
	mlk_put_u32(h + 92, mlk_crc32(h, 92));
}

/* Whatever byte of an index says something else: a list is made, and what it leads to is refused
 * or right. */
static void an_index_that_lies_does_no_harm(void **state)
{
	struct trace t = make_mode_trace(10, 100, A_CHUNK, MLK_STACK_RAW);
	struct mlk_reader *honest = open_trace(&t);
	const struct mlk_entry *truth, *said;
	size_t place, end, nr = list(honest, &truth);

	(void)state;
	assert_int_equal(find_chunks(&t, MLK_CHUNK_INDEX, &place), 1);
	end = place + MLK_CHUNK_HEADER + mlk_get_u32(t.bytes + place + 24);
	for (size_t at = place + MLK_CHUNK_HEADER; at < end; at++)
		for (int bit = 0; bit < 8; bit++) {
			struct mlk_reader *r;
			size_t listed;

			t.bytes[at] ^= (uint8_t)(1 << bit);
			seal(&t, place);
			r = open_trace(&t);
			listed = list(r, &said);
			for (size_t i = 0; i < listed; i++)
				if (mlk_reader_seek(r, &said[i], MLK_RECORD_ALL) == 0)
					assert_memory_equal(&said[i], &truth[i], sizeof(*said));
			listed = list(r, &said);
			assert_int_equal(listed, nr);
			assert_memory_equal(said, truth, nr * sizeof(*said));
			mlk_reader_free(r);
			t.bytes[at] ^= (uint8_t)(1 << bit);
		}
	mlk_reader_free(honest);
	free(t.bytes);
}

static void a_long_trace_has_more_than_one_index(void **state)
{
	const struct mlk_thread thread = {1, 1, "t"};
	static size_t places[64];
	const struct mlk_entry *entries;
	struct mlk_reader *r;
	struct trace t;
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);

	(void)state;
	for (int i = 0; i < 30000; i++)
		assert_int_equal(mlk_writer_threads(w, &thread, 1), 0);
	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 1), 0);
	mlk_writer_free(w);
	t = slurp(fd);
	assert_in_range(find_chunks(&t, MLK_CHUNK_INDEX, places), 3, 64);
	/* A header that no scan would find: the list is that of the index. */
	t.bytes[places[0] - 100] ^= 1;
	t.bytes[places[0] + 5 * MLK_CHUNK_HEADER] ^= 1;
	r = open_trace(&t);
	assert_int_equal(list(r, &entries), 30002);
	assert_int_equal(entries[0].records, MLK_RECORD_META);
	assert_int_equal(entries[30001].records, MLK_RECORD_END);
	mlk_reader_free(r);
	free(t.bytes);
}

/* A trace of a chunk, an INDEX with @index, and END; read, and listed, in little memory. */
static size_t list_made(const struct mlk_enc *index)
{
	static const uint8_t thread[] = {1, 7, 7, 1, 't'};
	const size_t index_at = MLK_FILE_HEADER + MLK_CHUNK_HEADER + sizeof(thread);
	const struct mlk_chunk threads = {
		.type = MLK_CHUNK_THREADS, .raw_len = sizeof(thread), .nr_records = 1};
	struct mlk_chunk h = {.type = MLK_CHUNK_INDEX, .seq = 1, .flags = MLK_CHUNK_ZSTD};
	uint8_t *frame = malloc(ZSTD_compressBound(index->len));
	struct mlk_enc file = {0}, end = {0};
	const struct mlk_entry *entries;
	struct mlk_reader *r;
	size_t len, nr;

	assert_non_null(frame);
	len = ZSTD_compress(frame, ZSTD_compressBound(index->len), index->buf, index->len, 1);
	h.raw_len = (uint32_t)index->len;
	fuzz_file_header(&file, MLK_STACK_RAW);
	fuzz_chunk(&file, threads, thread, sizeof(thread));
	fuzz_chunk(&file, h, frame, len);
	mlk_enc_u8(&end, MLK_END_EXITED);
	mlk_enc_u64(&end, 1);
	mlk_enc_u64(&end, index_at);
	h = (struct mlk_chunk){.type = MLK_CHUNK_END, .seq = 2, .raw_len = (uint32_t)end.len};
	fuzz_chunk(&file, h, end.buf, end.len);
	fuzz_memory_limit(12u << 20);
	assert_int_equal(mlk_reader_open_mem(&r, file.buf, file.len), 0);
	nr = list(r, &entries);
	mlk_reader_free(r);
	fuzz_memory_limit(SIZE_MAX / 2);
	mlk_enc_release(&file);
	mlk_enc_release(&end);
	free(frame);
	return nr;
}

static void an_index_of_more_chunks_than_fit_is_not_used(void **state)
{
	struct mlk_enc index = {0};

	(void)state;
	mlk_enc_uvar(&index, 0);
	mlk_enc_uvar(&index, 600000);
	for (int i = 0; i < 600000; i++)
		mlk_enc_bytes(&index, i ? "\5\0\1\0\0\1" : "\5\x40\0\0\0\1", 6);
	assert_int_equal(list_made(&index), 2);
	mlk_enc_release(&index);
}

static void an_index_that_leads_to_itself_is_not_used(void **state)
{
	(void)state;
	for (uint64_t before = 0; before < 400; before++) {
		struct mlk_enc index = {0};

		mlk_enc_uvar(&index, before);
		mlk_enc_uvar(&index, 1);
		mlk_enc_bytes(&index, "\5\x40\0\0\0\1", 6);
		assert_int_equal(list_made(&index), 2);
		mlk_enc_release(&index);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_chunk_reads_alone),
		cmocka_unit_test(without_an_index_the_list_is_the_same),
		cmocka_unit_test(a_chunk_that_is_listed_and_damaged_is_refused),
		cmocka_unit_test(an_index_that_lies_does_no_harm),
		cmocka_unit_test(an_index_of_more_chunks_than_fit_is_not_used),
		cmocka_unit_test(an_index_that_leads_to_itself_is_not_used),
		cmocka_unit_test(a_long_trace_has_more_than_one_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
