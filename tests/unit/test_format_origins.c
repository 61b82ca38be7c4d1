/* test_format_origins.c - ORIGINS chunks, doc/trace-format.md 4.12 */
#include "format/writer.h"
#include "tests/unit/format_outcome.h"
#include "tests/unit/format_world.h"

static const struct mlk_origin origins[] = {
	{.number = 1,
	 .tgid = 4711,
	 .process = "server",
	 .cgroup = "/system.slice",
	 .cache = "filp",
	 .flags = "GFP_KERNEL|__GFP_ZERO",
	 .order = 0},
	{.number = UINT32_MAX, .process = "", .cgroup = "", .cache = "", .flags = "", .order = 63},
};

/* A trace of both origins, and the name of a thread. */
static struct trace trace_of_origins(void)
{
	const struct mlk_thread thread = {.tgid = 0, .tid = 4711, .name = "server"};
	struct mlk_writer *w;
	int fd;

	w = open_writer(&fd, MLK_STACK_RAW);
	assert_int_equal(mlk_writer_origins(w, origins, 2), 0);
	assert_int_equal(mlk_writer_threads(w, &thread, 1), 0);
	assert_int_equal(mlk_writer_finish(w, MLK_END_SIGNAL, 1000), 0);
	mlk_writer_free(w);
	return slurp(fd);
}

static void check_origin(const struct mlk_origin *back, const struct mlk_origin *o)
{
	assert_int_equal(back->number, o->number);
	assert_int_equal(back->tgid, o->tgid);
	assert_int_equal(back->order, o->order);
	assert_string_equal(back->process, o->process);
	assert_string_equal(back->cgroup, o->cgroup);
	assert_string_equal(back->cache, o->cache);
	assert_string_equal(back->flags, o->flags);
}

static void origins_come_back_and_only_to_those_who_ask(void **state)
{
	struct trace t = trace_of_origins();
	struct mlk_reader *r;
	struct mlk_record rec;

	(void)state;
	assert_int_equal(mlk_reader_open_mem(&r, t.bytes, t.len), 0);
	while (mlk_reader_next(r, &rec) == 1)
		assert_int_not_equal(rec.type, MLK_RECORD_ORIGIN);
	mlk_reader_rewind(r, MLK_RECORD_ORIGIN);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(mlk_reader_next(r, &rec), 1);
		assert_int_equal(rec.type, MLK_RECORD_ORIGIN);
		check_origin(&rec.origin, &origins[i]);
	}
	assert_int_equal(mlk_reader_next(r, &rec), 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_unknown, 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_lost, 0);
	mlk_reader_free(r);
	free(t.bytes);
}

/* How many origins are read of @payload, @len bytes of a chunk; *@damaged: it is. */
static int read_origins(const void *payload, size_t len, bool *damaged)
{
	struct mlk_record last;

	return read_hand_made((struct mlk_chunk){.type = MLK_CHUNK_ORIGINS}, payload, len,
			      MLK_RECORD_ORIGIN, &last, damaged);
}

#define BEGIN "\1\7\1a\1b\1c\1d" /* an origin but for its order */

static void wrong_ones_are_damage(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		int nr;
		bool damaged;
	} cases[] = {
#define CASE(bytes, nr, damaged) {bytes, sizeof(bytes) - 1, nr, damaged}
		CASE("\0", 0, false),
		CASE("\1" BEGIN "\77", 1, false),
		CASE("\1" BEGIN "\100", 0, true),		     /* an order of 64 */
		CASE("\2" BEGIN "\77" BEGIN "\100", 1, true),	     /* the second one */
		CASE("\2" BEGIN "\0", 1, true),			     /* one is missing */
		CASE("\1\1\7\3a\0b\1b\1c\1d\0", 0, true),	     /* a NUL in a name */
		CASE("\1\1\7\177abc", 0, true),			     /* a name that goes on */
		CASE("\xff\xff\xff\xff\x0f" BEGIN "\0", 0, true),    /* 2^32 - 1 of them */
		CASE("\1\xff\xff\xff\xff\x7f\7\0\0\0\0\0", 0, true), /* a number of 35 bits */
		CASE("\1" BEGIN "\0"
		     "behind",
		     1, false),
#undef CASE
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool damaged;
		int nr = read_origins(cases[i].bytes, cases[i].len, &damaged);

		if (nr != cases[i].nr || damaged != cases[i].damaged)
			fail_msg("case %zu: %d origins, %sdamaged", i, nr, damaged ? "" : "not ");
	}
}

static void one_that_is_cut_anywhere_is_damage(void **state)
{
	static const char one[] = "\1" BEGIN "\3";
	bool damaged;

	(void)state;
	for (size_t len = 1; len < sizeof(one) - 1; len++) {
		assert_int_equal(read_origins(one, len, &damaged), 0);
		assert_true(damaged);
	}
	assert_int_equal(read_origins(one, sizeof(one) - 1, &damaged), 1);
	assert_false(damaged);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(origins_come_back_and_only_to_those_who_ask),
		cmocka_unit_test(wrong_ones_are_damage),
		cmocka_unit_test(one_that_is_cut_anywhere_is_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
