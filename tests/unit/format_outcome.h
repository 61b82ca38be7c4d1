/* format_outcome.h - what a reader makes of a trace that a test puts together by hand */
#ifndef TESTS_FORMAT_OUTCOME_H
#define TESTS_FORMAT_OUTCOME_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/event/events.h"
#include "format/reader.h"
#include "tests/fuzz/fuzz.h"

#define MIB 1048576u

static const uint8_t last_thread[] = {1, 7, 7, 4, 'l', 'a', 's', 't'};

/* What a reader makes of a trace. */
struct outcome {
	int records; /* but for the last thread */
	bool last_read;
	uint64_t lost, chunks;
};

static inline struct outcome read_trace(const struct mlk_enc *trace)
{
	struct outcome o = {0};
	struct mlk_reader *r;
	struct mlk_record rec;
	int got;

	assert_false(trace->failed);
	assert_int_equal(mlk_reader_open_mem(&r, trace->buf, trace->len), 0);
	while ((got = mlk_reader_next(r, &rec)) == 1) {
		if (rec.type == MLK_RECORD_THREAD && !strcmp(rec.thread.name, "last"))
			o.last_read = true;
		else
			o.records++;
	}
	assert_int_equal(got, 0);
	o.lost = mlk_reader_condition(r)->chunks_lost;
	o.chunks = mlk_reader_condition(r)->chunks;
	mlk_reader_free(r);
	return o;
}

/* How many records of @type are read of a trace of one chunk: @h, whose first members are set, with
 * the @len bytes at @payload.  *@last is the last of them, *@damaged: the chunk is. */
static inline int read_hand_made(struct mlk_chunk h, const void *payload, size_t len,
				 unsigned int type, struct mlk_record *last, bool *damaged)
{
	struct mlk_enc trace = {0};
	struct mlk_record rec;
	struct mlk_reader *r;
	int nr = 0;

	h.raw_len = (uint32_t)len;
	h.nr_records = 1;
	fuzz_file_header(&trace, 0);
	fuzz_chunk(&trace, h, payload, len);
	assert_int_equal(mlk_reader_open_mem(&r, trace.buf, trace.len), 0);
	mlk_reader_rewind(r, type);
	for (; mlk_reader_next(r, &rec) == 1; nr++)
		*last = rec;
	*damaged = mlk_reader_condition(r)->chunks_lost != 0;
	mlk_reader_free(r);
	mlk_enc_release(&trace);
	return nr;
}

/* A trace of one chunk, @h with @stored, and then one of the thread "last". */
static inline struct outcome read_chunk(struct mlk_chunk h, const void *stored, size_t stored_len)
{
	struct mlk_chunk last = {
		.type = MLK_CHUNK_THREADS, .seq = h.seq + 1, .raw_len = sizeof(last_thread)};
	struct mlk_enc trace = {0};
	struct outcome o;

	fuzz_file_header(&trace, 0);
	fuzz_chunk(&trace, h, stored, stored_len);
	fuzz_chunk(&trace, last, last_thread, sizeof(last_thread));
	o = read_trace(&trace);
	mlk_enc_release(&trace);
	assert_true(o.last_read);
	return o;
}

static inline struct outcome read_payload(enum mlk_chunk_type type, const void *payload, size_t len)
{
	const struct mlk_chunk h = {
		.type = (uint16_t)type, .raw_len = (uint32_t)len, .nr_records = 1};

	return read_chunk(h, payload, len);
}

#endif
