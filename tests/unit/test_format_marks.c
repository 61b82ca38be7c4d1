/* test_format_marks.c - MARKS chunks, doc/trace-format.md 4.16 */
#include <errno.h>

#include "format/writer.h"
#include "tests/unit/format_outcome.h"
#include "tests/unit/format_world.h"

static const struct mlk_mark marks[] = {
	{.time_ns = 5000000000, .kind = MLK_MARK_SIGNAL, .text = ""},
	{.time_ns = 4999999999, .kind = MLK_MARK_TEXT, .text = "before\xff"},
	{.time_ns = UINT64_MAX, .kind = UINT32_MAX, .text = "later"},
};

#define NR (sizeof(marks) / sizeof(marks[0]))

static void marks_come_back_and_only_to_those_who_ask(void **state)
{
	char text[MLK_MAX_STRING + 2];
	const struct mlk_mark too_long[] = {marks[0], {.text = text}};
	struct mlk_writer *w;
	struct mlk_reader *r;
	struct mlk_record rec;
	struct trace t;
	int fd;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[MLK_MAX_STRING + 1] = '\0';
	w = open_writer(&fd, MLK_STACK_RAW);
	assert_int_equal(mlk_writer_marks(w, marks, 0), 0);
	assert_int_equal(mlk_writer_marks(w, marks, NR - 1), 0);
	assert_int_equal(mlk_writer_marks(w, too_long, 2), -EINVAL);
	assert_int_equal(mlk_writer_marks(w, marks + NR - 1, 1), 0);
	assert_int_equal(mlk_writer_finish(w, MLK_END_SIGNAL, 1000), 0);
	mlk_writer_free(w);
	t = slurp(fd);
	assert_int_equal(mlk_reader_open_mem(&r, t.bytes, t.len), 0);
	while (mlk_reader_next(r, &rec) == 1)
		assert_int_not_equal(rec.type, MLK_RECORD_MARK);
	mlk_reader_rewind(r, MLK_RECORD_MARK);
	for (size_t i = 0; i < NR; i++) {
		assert_int_equal(mlk_reader_next(r, &rec), 1);
		assert_int_equal(rec.type, MLK_RECORD_MARK);
		assert_true(rec.mark.time_ns == marks[i].time_ns);
		assert_true(rec.mark.kind == marks[i].kind);
		assert_string_equal(rec.mark.text, marks[i].text);
	}
	assert_int_equal(mlk_reader_next(r, &rec), 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_unknown, 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_lost, 0);
	mlk_reader_free(r);
	free(t.bytes);
}

/* A trace of one chunk that begins at 1 s, with @payload, @len bytes, into @trace. */
static void encode_chunk(struct mlk_enc *trace, const void *payload, size_t len)
{
	const struct mlk_chunk h = {.type = MLK_CHUNK_MARKS,
				    .raw_len = (uint32_t)len,
				    .first_ns = 1000000000,
				    .nr_records = 1};

	fuzz_file_header(trace, 0);
	fuzz_chunk(trace, h, payload, len);
}

/* How many marks are read of @payload, @len bytes; *@damaged: it is. */
static int read_marks(const void *payload, size_t len, uint64_t *last_ns, bool *damaged)
{
	struct mlk_enc trace = {0};
	struct mlk_record rec;
	struct mlk_reader *r;
	int nr = 0;

	encode_chunk(&trace, payload, len);
	assert_int_equal(mlk_reader_open_mem(&r, trace.buf, trace.len), 0);
	for (mlk_reader_rewind(r, MLK_RECORD_MARK); mlk_reader_next(r, &rec) == 1; nr++)
		*last_ns = rec.mark.time_ns;
	*damaged = mlk_reader_condition(r)->chunks_lost != 0;
	mlk_reader_free(r);
	mlk_enc_release(&trace);
	return nr;
}

#define ONE "\4\1\3abc" /* 2 nanoseconds later, "abc" */

/* @nr marks are read of the literal @bytes, and then there is damage, or none. */
#define CHECK(bytes, nr, damage)                                                                \
	do {                                                                                    \
		assert_int_equal(read_marks(bytes, sizeof(bytes) - 1, &last_ns, &damaged), nr); \
		assert_int_equal(damaged, damage);                                              \
	} while (0)

static void wrong_ones_are_damage(void **state)
{
	uint64_t last_ns;
	bool damaged;

	(void)state;
	CHECK("\0", 0, false);
	CHECK("\2" ONE ONE, 2, false);
	assert_true(last_ns == 1000000004);
	CHECK("\3" ONE ONE, 2, true);		      /* one is missing */
	CHECK("\1\0\xff\xff\xff\xff\x7f\0", 0, true); /* a kind of 35 bits */
	CHECK("\1\0\1\3a\0c", 0, true);		      /* a text with a NUL */
	CHECK("\1\0\1\x81\x20", 0, true);	      /* of 4,097 bytes */
	CHECK("\xff\xff\xff\xff\x0f" ONE, 0, true);   /* 2^32 - 1 of them */
	CHECK("\1" ONE "behind", 1, false);
}

static void one_that_is_cut_anywhere_is_damage(void **state)
{
	static const char one[] = "\1" ONE;
	uint64_t last_ns;
	bool damaged;

	(void)state;
	for (size_t len = 1; len < sizeof(one) - 1; len++) {
		assert_int_equal(read_marks(one, len, &last_ns, &damaged), 0);
		assert_true(damaged);
	}
	assert_int_equal(read_marks(one, sizeof(one) - 1, &last_ns, &damaged), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_come_back_and_only_to_those_who_ask),
		cmocka_unit_test(wrong_ones_are_damage),
		cmocka_unit_test(one_that_is_cut_anywhere_is_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
