/* test_format_stacks.c - STACKS chunks, doc/trace-format.md 4.9 */
#include <errno.h>
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

enum { KNOWN = 0x107b2, SP = 0x7fff0000 };

static const struct mlk_meta meta = {.tgid = 42, .start_ns = 1, .stack_mode = MLK_STACK_RAW};

static struct mlk_event stack_of(uint32_t tid, const uint8_t *bytes, uint32_t len)
{
	struct mlk_event e = {.kind = MLK_ALLOC,
			      .nr_regs = 17,
			      .flags = MLK_EVENT_TORN,
			      .tgid = 42,
			      .tid = tid,
			      .time_ns = 100 + tid,
			      .addr = 5,
			      .alloc_id = 6,
			      .func = MLK_FUNC_CALLOC,
			      .stack = bytes,
			      .stack_len = len};

	e.regs[MLK_SP_REG] = SP;
	e.regs[16] = 0x400000 + tid;
	return e;
}

static FILE *begin(struct mlk_writer **w)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(mlk_writer_open(w, fileno(file), &meta, 1), 0);
	return file;
}

/* End the trace; its bytes, to be released with free(). */
static uint8_t *end(FILE *file, struct mlk_writer *w, size_t *len)
{
	uint8_t *bytes;

	assert_int_equal(mlk_writer_finish(w, MLK_END_SIGNAL, 1000), 0);
	mlk_writer_free(w);
	*len = (size_t)lseek(fileno(file), 0, SEEK_END);
	bytes = malloc(*len);
	assert_non_null(bytes);
	assert_int_equal(pread(fileno(file), bytes, *len, 0), *len);
	fclose(file);
	return bytes;
}

static void stacks_come_back_and_only_to_those_who_ask(void **state)
{
	static uint8_t content[4096];
	struct mlk_writer *w;
	FILE *file = begin(&w);
	struct mlk_event e;
	struct mlk_record rec;
	struct mlk_reader *r;
	uint8_t *bytes;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i * 31 + i / 256);
	for (uint32_t tid = 42; tid < 45; tid++) {
		e = stack_of(tid, content, sizeof(content) - 8 * (tid - 42));
		assert_int_equal(mlk_writer_stack(w, &e, KNOWN), 0);
	}
	e.addr = 0x1000;
	assert_int_equal(mlk_writer_event(w, &e), 0); /* an EVENTS chunk is open beside it */
	bytes = end(file, w, &len);
	assert_int_equal(mlk_reader_open_mem(&r, bytes, len), 0);
	assert_int_equal(mlk_reader_next(r, &rec), 1);
	assert_int_equal(rec.type, MLK_RECORD_EVENT);
	assert_int_equal(mlk_reader_next(r, &rec), 0);
	mlk_reader_rewind(r, MLK_RECORD_STACK);
	for (uint32_t tid = 42; tid < 45; tid++) {
		assert_int_equal(mlk_reader_next(r, &rec), 1);
		assert_int_equal(rec.type, MLK_RECORD_STACK);
		assert_int_equal(rec.event.tid, tid);
		assert_int_equal(rec.event.time_ns, 100 + tid);
		assert_int_equal(rec.event.flags, MLK_EVENT_TORN);
		assert_int_equal(rec.event.size, KNOWN);
		assert_int_equal(rec.event.addr + rec.event.alloc_id + rec.event.func, 0);
		assert_int_equal(rec.event.regs[16], 0x400000 + tid);
		assert_int_equal(rec.event.stack_len, sizeof(content) - 8 * (tid - 42));
		assert_memory_equal(rec.event.stack, content, rec.event.stack_len);
	}
	assert_int_equal(mlk_reader_next(r, &rec), 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_unknown, 0);
	mlk_reader_free(r);
	free(bytes);
}

static void more_than_a_chunk_holds_goes_into_several(void **state)
{
	static uint8_t content[MLK_MAX_STACK];
	struct mlk_writer *w;
	FILE *file = begin(&w);
	struct mlk_record rec;
	struct mlk_reader *r;
	unsigned int seed = 1;
	uint32_t chunks = 0, stacks = 0;
	uint8_t *bytes;
	size_t len;

	(void)state;
	for (uint32_t tid = 1; tid <= 100; tid++) {
		struct mlk_event e = stack_of(tid, content, sizeof(content));

		for (size_t i = 0; i < sizeof(content); i++)
			content[i] = (uint8_t)rand_r(&seed);
		assert_int_equal(mlk_writer_stack(w, &e, KNOWN), 0);
	}
	bytes = end(file, w, &len);
	assert_int_equal(mlk_reader_open_mem(&r, bytes, len), 0);
	mlk_reader_rewind(r, MLK_RECORD_STACK | MLK_RECORD_CHUNK);
	while (mlk_reader_next(r, &rec) == 1)
		if (rec.type == MLK_RECORD_STACK) {
			assert_int_equal(rec.event.tid, ++stacks);
			if (stacks == 100) /* the one that is still in memory */
				assert_memory_equal(rec.event.stack, content, sizeof(content));
		} else if (rec.chunk.records == MLK_RECORD_STACK)
			chunks++;
	assert_int_equal(stacks, 100);
	assert_true(chunks > 2);
	assert_int_equal(mlk_reader_condition(r)->chunks_lost, 0);
	mlk_reader_free(r);
	free(bytes);
}

static void what_is_no_stack_is_refused_and_leaves_no_chunk(void **state)
{
	struct mlk_event e = stack_of(1, NULL, 0);
	struct mlk_writer *w;
	FILE *file = begin(&w);
	struct mlk_record rec;
	struct mlk_reader *r;
	uint8_t *bytes;
	size_t len;

	(void)state;
	e.kind = MLK_FREE;
	assert_int_equal(mlk_writer_stack(w, &e, KNOWN), -EINVAL);
	e.kind = MLK_ALLOC;
	e.nr_regs = 3;
	assert_int_equal(mlk_writer_stack(w, &e, KNOWN), -EINVAL);
	bytes = end(file, w, &len);
	assert_int_equal(mlk_reader_open_mem(&r, bytes, len), 0);
	mlk_reader_rewind(r, MLK_RECORD_CHUNK);
	while (mlk_reader_next(r, &rec) == 1)
		assert_int_not_equal(rec.chunk.type, MLK_CHUNK_STACKS);
	mlk_reader_free(r);
	free(bytes);
}

/* An EVENTS chunk with a FREE, of which the header is made to say STACKS. */
static void a_stacks_chunk_with_anything_but_stacks_is_damaged(void **state)
{
	struct mlk_event e = {.kind = MLK_FREE, .tgid = 42, .tid = 42, .time_ns = 5, .addr = 64};
	struct mlk_chunk h;
	struct mlk_writer *w;
	FILE *file = begin(&w);
	struct mlk_record rec;
	struct mlk_reader *r;
	uint8_t *bytes;
	uint32_t salt;
	size_t len, at = MLK_FILE_HEADER;

	(void)state;
	assert_int_equal(mlk_writer_event(w, &e), 0);
	bytes = end(file, w, &len);
	memcpy(&salt, bytes + 32, sizeof(salt));
	while (assert_true(mlk_chunk_header_unpack(&h, bytes + at, salt)),
	       h.type != MLK_CHUNK_EVENTS)
		at += MLK_CHUNK_HEADER + h.stored_len;
	h.type = MLK_CHUNK_STACKS;
	mlk_chunk_header_pack(bytes + at, &h);
	assert_int_equal(mlk_reader_open_mem(&r, bytes, len), 0);
	mlk_reader_rewind(r, MLK_RECORD_STACK | MLK_RECORD_DAMAGED);
	assert_int_equal(mlk_reader_next(r, &rec), 1);
	assert_int_equal(rec.type, MLK_RECORD_DAMAGED);
	assert_int_equal(mlk_reader_next(r, &rec), 0);
	mlk_reader_free(r);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_come_back_and_only_to_those_who_ask),
		cmocka_unit_test(more_than_a_chunk_holds_goes_into_several),
		cmocka_unit_test(what_is_no_stack_is_refused_and_leaves_no_chunk),
		cmocka_unit_test(a_stacks_chunk_with_anything_but_stacks_is_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
