/* test_format_memory.c - MEMORY chunks, doc/trace-format.md 4.13 */
#include "format/writer.h"
#include "tests/unit/format_outcome.h"
#include "tests/unit/format_world.h"

#define BIT(value) (UINT64_C(1) << (value))

static const struct mlk_memory samples[] = {
	{.tgid = 4711,
	 .time_ns = 5000000000,
	 .known = BIT(MLK_MEMORY_RSS) | BIT(MLK_MEMORY_PSS),
	 .value = {[MLK_MEMORY_RSS] = 47 << 20, [MLK_MEMORY_PSS] = 43 << 20}},
	{.tgid = UINT32_MAX,
	 .time_ns = 5000000100,
	 .known = BIT(MLK_MEMORY_NR) - 1,
	 .value = {[0] = UINT64_MAX, [MLK_MEMORY_NR - 1] = UINT64_MAX}},
	{.tgid = 4712, .time_ns = 5000000090, .error = 13},
	/* the sample before that knew the value was another process's */
	{.tgid = 4711,
	 .time_ns = 6000000000,
	 .known = BIT(MLK_MEMORY_RSS) | BIT(0),
	 .value = {[MLK_MEMORY_RSS] = 3}},
};

#define NR (sizeof(samples) / sizeof(samples[0]))

/* A trace of them, written to the file that slurp() reads. */
static struct trace trace_of_samples(void)
{
	struct mlk_writer *w;
	int fd;

	w = open_writer(&fd, MLK_STACK_RAW);
	assert_int_equal(mlk_writer_memory(w, samples, 0), 0);
	assert_int_equal(mlk_writer_memory(w, samples, NR - 1), 0);
	assert_int_equal(mlk_writer_memory(w, samples + NR - 1, 1), 0);
	assert_int_equal(mlk_writer_finish(w, MLK_END_SIGNAL, 1000), 0);
	mlk_writer_free(w);
	return slurp(fd);
}

static void samples_come_back_and_only_to_those_who_ask(void **state)
{
	struct trace t = trace_of_samples();
	struct mlk_reader *r;
	struct mlk_record rec;

	(void)state;
	assert_int_equal(mlk_reader_open_mem(&r, t.bytes, t.len), 0);
	while (mlk_reader_next(r, &rec) == 1)
		assert_int_not_equal(rec.type, MLK_RECORD_MEMORY);
	mlk_reader_rewind(r, MLK_RECORD_MEMORY);
	for (size_t i = 0; i < NR; i++) {
		assert_int_equal(mlk_reader_next(r, &rec), 1);
		assert_int_equal(rec.type, MLK_RECORD_MEMORY);
		assert_memory_equal(&rec.memory, &samples[i], sizeof(samples[i]));
	}
	assert_int_equal(mlk_reader_next(r, &rec), 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_unknown, 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_lost, 0);
	mlk_reader_free(r);
	free(t.bytes);
}

/* How many samples are read of @payload, @len bytes of a chunk that begins at 1 s; *@last is the
 * last of them, *@damaged: it is. */
static int read_samples(const void *payload, size_t len, struct mlk_memory *last, bool *damaged)
{
	const struct mlk_chunk h = {.type = MLK_CHUNK_MEMORY, .first_ns = 1000000000};
	struct mlk_record record = {0};
	int nr = read_hand_made(h, payload, len, MLK_RECORD_MEMORY, &record, damaged);

	*last = record.memory;
	return nr;
}

#define RSS "\7\2\2\6" /* tgid 7, a nanosecond later, RSS 3 bytes more */

/* @nr samples are read of the bytes of the literal @bytes, and then there is damage, or none. */
#define CHECK(bytes, nr, damage)                                                               \
	do {                                                                                   \
		assert_int_equal(read_samples(bytes, sizeof(bytes) - 1, &last, &damaged), nr); \
		assert_int_equal(damaged, damage);                                             \
	} while (0)

static void wrong_ones_are_damage(void **state)
{
	struct mlk_memory last;
	bool damaged;

	(void)state;
	CHECK("\0", 0, false);
	CHECK("\2" RSS RSS, 2, false);
	CHECK("\3" RSS RSS, 2, true);			/* one is missing */
	CHECK("\1\xff\xff\xff\xff\x7f\0\0\0", 0, true); /* a tgid of 35 bits */
	CHECK("\1\7\0\0\xff\xff\xff\xff\x7f", 0, true); /* an error of 35 bits */
	CHECK("\xff\xff\xff\xff\x0f" RSS, 0, true);	/* 2^32 - 1 of them */
	CHECK("\1" RSS "behind", 1, false);
}

static void differences_add_up(void **state)
{
	struct mlk_memory last;
	bool damaged;

	(void)state;
	assert_int_equal(read_samples("\2" RSS RSS, 9, &last, &damaged), 2);
	assert_int_equal(last.tgid, 7);
	assert_int_equal(last.time_ns, 1000000002);
	assert_int_equal(last.known, BIT(MLK_MEMORY_RSS));
	assert_int_equal(last.value[MLK_MEMORY_RSS], 6);
}

/* Those of a later version: bits 62 and 63, then the RSS of another sample. */
static void values_that_are_not_known_are_skipped(void **state)
{
	static const char bytes[] = "\2\7\2\x80\x80\x80\x80\x80\x80\x80\x80\xc0\1\24\24" RSS;
	struct mlk_memory last;
	bool damaged;

	(void)state;
	assert_int_equal(read_samples(bytes, sizeof(bytes) - 1, &last, &damaged), 2);
	assert_false(damaged);
	assert_int_equal(last.time_ns, 1000000002);
	assert_int_equal(last.value[MLK_MEMORY_RSS], 3);
	assert_int_equal(read_samples("\1\7\2\x80\x80\x80\x80\x80\x80\x80\x80\xc0\1\24\24", 15,
				      &last, &damaged),
			 1);
	assert_int_equal(last.known, 0);
	assert_int_equal(last.error, 0);
}

static void one_that_is_cut_anywhere_is_damage(void **state)
{
	static const char one[] = "\1" RSS;
	struct mlk_memory last;
	bool damaged;

	(void)state;
	for (size_t len = 1; len < sizeof(one) - 1; len++) {
		assert_int_equal(read_samples(one, len, &last, &damaged), 0);
		assert_true(damaged);
	}
	assert_int_equal(read_samples(one, sizeof(one) - 1, &last, &damaged), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_come_back_and_only_to_those_who_ask),
		cmocka_unit_test(wrong_ones_are_damage),
		cmocka_unit_test(differences_add_up),
		cmocka_unit_test(values_that_are_not_known_are_skipped),
		cmocka_unit_test(one_that_is_cut_anywhere_is_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
