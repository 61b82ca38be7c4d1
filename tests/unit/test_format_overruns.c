/* test_format_overruns.c - OVERRUNS chunks, doc/trace-format.md 4.10 */
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

static const uint8_t stack[256] = {1, 2, 3};
static const uint8_t beyond[MLK_MAX_OVERRUN] = {0, 'x', 'y'};

static struct mlk_overrun overrun_of(uint32_t nr)
{
	struct mlk_overrun o = {.at = {.kind = MLK_ALLOC,
				       .nr_regs = 17,
				       .tgid = 42,
				       .tid = 42 + nr,
				       .time_ns = 100 + nr,
				       .addr = 0x1000 + 64 * nr,
				       .size = nr ? 47 : UINT64_MAX,
				       .func = MLK_FUNC_CALLOC,
				       .alloc_id = 6,
				       .stack = stack,
				       .stack_len = sizeof(stack)},
				.found = (uint8_t)(1 + nr % 4),
				.offset = nr % 2 ? 47 : -1,
				.len = nr % (MLK_MAX_OVERRUN + 1),
				.changed = nr / 2 % 128,
				.bytes = beyond};

	o.at.regs[MLK_SP_REG] = 0x7fff0000;
	o.at.regs[16] = 0x400000 + nr;
	if (o.changed > o.len)
		o.changed = o.len;
	return o;
}

static FILE *begin(struct mlk_writer **w, enum mlk_stack_mode mode)
{
	const struct mlk_meta meta = {.tgid = 42, .start_ns = 1, .stack_mode = mode, .guarded = 1};
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(mlk_writer_open(w, fileno(file), &meta, 1), 0);
	return file;
}

/* End the trace and read it; its bytes, to be released with free(). */
static uint8_t *end(FILE *file, struct mlk_writer *w, struct mlk_reader **r)
{
	uint8_t *bytes;
	size_t len;

	assert_int_equal(mlk_writer_finish(w, MLK_END_SIGNAL, 1000), 0);
	mlk_writer_free(w);
	len = (size_t)lseek(fileno(file), 0, SEEK_END);
	bytes = malloc(len);
	assert_non_null(bytes);
	assert_int_equal(pread(fileno(file), bytes, len, 0), len);
	fclose(file);
	assert_int_equal(mlk_reader_open_mem(r, bytes, len), 0);
	assert_int_equal(mlk_reader_meta(*r)->guarded, 1);
	return bytes;
}

static void check_one(const struct mlk_overrun *back, uint32_t nr)
{
	const struct mlk_overrun o = overrun_of(nr);

	assert_int_equal(back->found, o.found);
	assert_true(back->offset == o.offset);
	assert_int_equal(back->len, o.len);
	assert_int_equal(back->changed, o.changed);
	assert_non_null(back->bytes);
	assert_memory_equal(back->bytes, beyond, o.len);
	assert_int_equal(back->at.kind, MLK_ALLOC);
	assert_int_equal(back->at.tid, o.at.tid);
	assert_int_equal(back->at.time_ns, o.at.time_ns);
	assert_true(back->at.addr == o.at.addr && back->at.size == o.at.size);
	assert_int_equal(back->at.func + back->at.alloc_id, 0);
	assert_int_equal(back->at.regs[16], o.at.regs[16]);
	assert_int_equal(back->at.stack_len, sizeof(stack));
	assert_memory_equal(back->at.stack, stack, sizeof(stack));
}

static void overruns_come_back_and_only_to_those_who_ask(void **state)
{
	struct mlk_writer *w;
	FILE *file = begin(&w, MLK_STACK_RAW);
	struct mlk_record rec;
	struct mlk_reader *r;
	struct mlk_event e;
	uint8_t *bytes;

	(void)state;
	for (uint32_t nr = 0; nr < 300; nr++) {
		struct mlk_overrun o = overrun_of(nr);

		assert_int_equal(mlk_writer_overrun(w, &o), 0);
	}
	e = overrun_of(7).at;
	assert_int_equal(mlk_writer_event(w, &e), 0); /* an EVENTS chunk is open beside it */
	bytes = end(file, w, &r);
	assert_int_equal(mlk_reader_next(r, &rec), 1);
	assert_int_equal(rec.type, MLK_RECORD_EVENT);
	assert_int_equal(mlk_reader_next(r, &rec), 0);
	mlk_reader_rewind(r, MLK_RECORD_OVERRUN);
	for (uint32_t nr = 0; nr < 300; nr++) {
		assert_int_equal(mlk_reader_next(r, &rec), 1);
		assert_int_equal(rec.type, MLK_RECORD_OVERRUN);
		check_one(&rec.overrun, nr);
	}
	assert_int_equal(mlk_reader_next(r, &rec), 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_unknown, 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_lost, 0);
	mlk_reader_free(r);
	free(bytes);
}

static void a_redacted_trace_has_no_byte_of_the_program(void **state)
{
	struct mlk_writer *w;
	FILE *file = begin(&w, MLK_STACK_REDACTED);
	struct mlk_overrun o = overrun_of(3);
	struct mlk_record rec;
	struct mlk_reader *r;
	uint8_t *bytes;

	(void)state;
	assert_int_equal(mlk_writer_overrun(w, &o), 0);
	bytes = end(file, w, &r);
	mlk_reader_rewind(r, MLK_RECORD_OVERRUN);
	assert_int_equal(mlk_reader_next(r, &rec), 1);
	assert_null(rec.overrun.bytes);
	assert_int_equal(rec.overrun.len, 3);
	mlk_reader_free(r);
	free(bytes);
}

static void what_is_no_overrun_is_refused_and_leaves_no_chunk(void **state)
{
	struct mlk_writer *w;
	FILE *file = begin(&w, MLK_STACK_RAW);
	struct mlk_overrun o = overrun_of(3);
	struct mlk_record rec;
	struct mlk_reader *r;
	uint8_t *bytes;

	(void)state;
	o.len = MLK_MAX_OVERRUN + 1;
	assert_int_equal(mlk_writer_overrun(w, &o), -EINVAL);
	o.len = o.changed - 1;
	assert_int_equal(mlk_writer_overrun(w, &o), -EINVAL);
	o = overrun_of(3);
	o.at.kind = MLK_FREE;
	assert_int_equal(mlk_writer_overrun(w, &o), -EINVAL);
	o.at.kind = MLK_ALLOC;
	o.at.nr_regs = 3;
	assert_int_equal(mlk_writer_overrun(w, &o), -EINVAL);
	bytes = end(file, w, &r);
	mlk_reader_rewind(r, MLK_RECORD_CHUNK);
	while (mlk_reader_next(r, &rec) == 1)
		assert_int_not_equal(rec.chunk.type, MLK_CHUNK_OVERRUNS);
	mlk_reader_free(r);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overruns_come_back_and_only_to_those_who_ask),
		cmocka_unit_test(a_redacted_trace_has_no_byte_of_the_program),
		cmocka_unit_test(what_is_no_overrun_is_refused_and_leaves_no_chunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
