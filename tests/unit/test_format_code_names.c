/* test_format_code_names.c - CODENAMES chunks, doc/trace-format.md 4.23 */
#include <errno.h>

#include "format/reader.h"
#include "format/record/code_names.h"
#include "format/writer.h"
#include "tests/unit/format_world.h"

#define MANY 150000

static const struct mlk_code_name few[] = {
	{0x7000, 0x40, 0, "JS:*handle /srv/app.js:12:3"},
	{0x1000, 0, UINT32_MAX, ""},
	{UINT64_MAX, 0, 48, "Ljava/lang/Object;::<init>"},
	{0, UINT64_MAX, 1, "\xff"},
};

#define FEW (sizeof(few) / sizeof(few[0]))

static void check_same(const struct mlk_code_name *a, const struct mlk_code_name *b)
{
	assert_true(a->start == b->start && a->len == b->len && a->frame == b->frame);
	assert_string_equal(a->name, b->name);
}

/* A reader of what @names, written, became; the first record is requested. */
static struct mlk_reader *write_and_open(const struct mlk_code_names *names, struct trace *t)
{
	struct mlk_reader *r;
	struct mlk_writer *w;
	int fd;

	w = open_writer(&fd, MLK_STACK_RAW);
	assert_int_equal(mlk_writer_code_names(w, names), 0);
	assert_int_equal(mlk_writer_finish(w, MLK_END_SIGNAL, 2000), 0);
	mlk_writer_free(w);
	*t = slurp(fd);
	assert_int_equal(mlk_reader_open_mem(&r, t->bytes, t->len), 0);
	return r;
}

static void all_comes_back_and_only_to_those_who_ask(void **state)
{
	const struct mlk_code_names names = {
		7,   1500, MLK_CODE_NAMES_PERF_MAP, MLK_CODE_NAMES_ANEW, 47, "it is too large",
		FEW, few};
	struct mlk_record rec;
	struct trace t;
	struct mlk_reader *r = write_and_open(&names, &t);

	(void)state;
	while (mlk_reader_next(r, &rec) == 1)
		assert_int_not_equal(rec.type, MLK_RECORD_CODE_NAMES);
	mlk_reader_rewind(r, MLK_RECORD_CODE_NAMES);
	assert_int_equal(mlk_reader_next(r, &rec), 1);
	assert_int_equal(rec.type, MLK_RECORD_CODE_NAMES);
	assert_true(rec.code_names.tgid == 7 && rec.code_names.time_ns == 1500);
	assert_true(rec.code_names.flags == MLK_CODE_NAMES_ANEW && rec.code_names.left_out == 47);
	assert_string_equal(rec.code_names.problem, "it is too large");
	assert_int_equal(rec.code_names.nr, FEW);
	for (size_t i = 0; i < FEW; i++)
		check_same(&rec.code_names.names[i], &few[i]);
	assert_int_equal(mlk_reader_next(r, &rec), 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_unknown, 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_lost, 0);
	mlk_reader_free(r);
	free(t.bytes);
}

/* More than a chunk has room for: in their order, and only the first voids those before. */
static void many_are_in_several_chunks(void **state)
{
	struct mlk_code_name *many = calloc(MANY, sizeof(*many));
	struct mlk_code_names names = {.tgid = 7,
				       .time_ns = 1500,
				       .flags = MLK_CODE_NAMES_ANEW,
				       .problem = "",
				       .nr = MANY,
				       .names = many};
	struct mlk_record rec;
	struct mlk_reader *r;
	struct trace t;
	size_t nr = 0;

	(void)state;
	assert_non_null(many);
	for (size_t i = 0; i < MANY; i++)
		many[i] = (struct mlk_code_name){i * 64, 64, 0, few[i % FEW].name};
	r = write_and_open(&names, &t);
	mlk_reader_rewind(r, MLK_RECORD_CODE_NAMES);
	while (mlk_reader_next(r, &rec) == 1) {
		assert_int_equal(rec.code_names.flags, nr ? 0 : MLK_CODE_NAMES_ANEW);
		for (size_t i = 0; i < rec.code_names.nr; i++, nr++)
			check_same(&rec.code_names.names[i], &many[nr]);
	}
	assert_int_equal(nr, MANY);
	mlk_reader_free(r);
	free(t.bytes);
	free(many);
}

static void what_is_no_function_is_refused(void **state)
{
	const struct mlk_code_name wraps = {UINT64_MAX, 1, 0, "x"};
	struct mlk_code_names names = {.problem = "", .nr = 1, .names = &wraps};
	struct mlk_writer *w;
	int fd;

	(void)state;
	w = open_writer(&fd, MLK_STACK_RAW);
	assert_int_equal(mlk_writer_code_names(w, &names), -EINVAL);
	mlk_writer_free(w);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_comes_back_and_only_to_those_who_ask),
		cmocka_unit_test(many_are_in_several_chunks),
		cmocka_unit_test(what_is_no_function_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
