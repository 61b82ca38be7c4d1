/* test_format_reach.c - POINTERS and PASS chunks, doc/trace-format.md 4.17 and 4.18 */
#include "format/writer.h"
#include "tests/unit/format_outcome.h"
#include "tests/unit/format_world.h"

#define NR 100000

static struct mlk_pointer words[NR];

/* Words as memory has them: neighbours, gaps, and values from one end to the other. */
static void make_words(void)
{
	uint64_t address = 0;

	for (size_t i = 0; i < NR; i++) {
		words[i].address = address;
		words[i].value = i % 7 ? 0x7f0000000000 + i * 48 : UINT64_MAX * (i % 2);
		address += i % 100 ? 8 : UINT64_C(1) << 40;
	}
	words[NR - 1].address = UINT64_MAX - 7;
}

static struct mlk_pass sample_pass(void)
{
	static const struct mlk_range ranges[] = {
		{0, 4096, MLK_PERM_R | MLK_PERM_W, 7, "/x", 4096, 0},
		{4096, UINT64_MAX, MLK_PERM_W, 0, "", 0, UINT64_MAX - 4096}};
	static const struct mlk_reach_thread threads[] = {
		{.tid = 7, .how = MLK_REACH_WAITING, .known = 1 << 7 | 1 << 16, .regs = {[7] = 1}},
		{.tid = 8}};
	static const struct mlk_root roots[] = {{MLK_ROOT_EPOLL, 5, UINT64_MAX}};

	return (struct mlk_pass){.tgid = 7,
				 .pass = 2,
				 .snapshot = 1,
				 .flags = MLK_PASS_STOPPED,
				 .begin_ns = 1000,
				 .end_ns = 2000,
				 .words = NR,
				 .nr_ranges = 2,
				 .ranges = ranges,
				 .nr_threads = 2,
				 .threads = threads,
				 .nr_roots = 1,
				 .roots = roots};
}

static void check_lists(const struct mlk_pass *got, const struct mlk_pass *expected)
{
	for (size_t i = 0; i < expected->nr_ranges; i++) {
		assert_int_equal(got->ranges[i].start, expected->ranges[i].start);
		assert_int_equal(got->ranges[i].end, expected->ranges[i].end);
		assert_int_equal(got->ranges[i].perms, expected->ranges[i].perms);
		assert_int_equal(got->ranges[i].offset, expected->ranges[i].offset);
		assert_string_equal(got->ranges[i].path, expected->ranges[i].path);
		assert_int_equal(got->ranges[i].absent, expected->ranges[i].absent);
		assert_int_equal(got->ranges[i].unread, expected->ranges[i].unread);
	}
	assert_int_equal(got->nr_threads, expected->nr_threads);
	for (size_t i = 0; i < expected->nr_threads; i++) {
		assert_int_equal(got->threads[i].tid, expected->threads[i].tid);
		assert_int_equal(got->threads[i].how, expected->threads[i].how);
		assert_int_equal(got->threads[i].known, expected->threads[i].known);
		assert_memory_equal(got->threads[i].regs, expected->threads[i].regs,
				    sizeof(expected->threads[i].regs));
	}
}

static void words_and_passes_come_back(void **state)
{
	struct mlk_pass pass = sample_pass();
	struct mlk_record rec;
	struct mlk_reader *r;
	struct trace t;
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_REDACTED);

	(void)state;
	make_words();
	assert_int_equal(mlk_writer_pointers(w, &(struct mlk_pointers){7, 2, NR, words}, 1500), 0);
	assert_int_equal(mlk_writer_pointers(w, &(struct mlk_pointers){7, 2, 0, NULL}, 1500), 0);
	assert_int_equal(mlk_writer_pass(w, &pass), 0);
	assert_int_equal(mlk_writer_finish(w, MLK_END_SIGNAL, 3000), 0);
	mlk_writer_free(w);
	t = slurp(fd);
	assert_int_equal(mlk_reader_open_mem(&r, t.bytes, t.len), 0);
	mlk_reader_rewind(r, MLK_RECORD_POINTERS | MLK_RECORD_PASS);
	assert_int_equal(mlk_reader_next(r, &rec), 1);
	assert_int_equal(rec.type, MLK_RECORD_POINTERS);
	assert_int_equal(rec.pointers.tgid, 7);
	assert_int_equal(rec.pointers.pass, 2);
	assert_int_equal(rec.pointers.nr, NR);
	assert_memory_equal(rec.pointers.words, words, sizeof(words));
	assert_int_equal(mlk_reader_next(r, &rec), 1);
	assert_int_equal(rec.pointers.nr, 0);
	assert_int_equal(mlk_reader_next(r, &rec), 1);
	assert_int_equal(rec.type, MLK_RECORD_PASS);
	assert_int_equal(rec.pass.begin_ns, 1000);
	assert_int_equal(rec.pass.end_ns, 2000);
	assert_int_equal(rec.pass.words, NR);
	assert_int_equal(rec.pass.snapshot, 1);
	assert_int_equal(rec.pass.flags, MLK_PASS_STOPPED);
	assert_int_equal(rec.pass.nr_ranges, 2);
	check_lists(&rec.pass, &pass);
	assert_int_equal(rec.pass.nr_roots, 1);
	assert_int_equal(rec.pass.roots[0].value, UINT64_MAX);
	assert_int_equal(mlk_reader_next(r, &rec), 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_lost, 0);
	mlk_reader_free(r);
	free(t.bytes);
}

static void what_is_not_in_order_is_not_written(void **state)
{
	static const struct mlk_pointer twice[] = {{8, 1}, {8, 2}}, odd[] = {{9, 1}};
	static const struct mlk_range back[] = {{8, 16, 0, 0, "", 0, 0}, {0, 8, 0, 0, "", 0, 0}};
	struct mlk_pass pass = sample_pass();
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);

	(void)state;
	assert_int_equal(mlk_writer_pointers(w, &(struct mlk_pointers){7, 1, 2, twice}, 1),
			 -EINVAL);
	assert_int_equal(mlk_writer_pointers(w, &(struct mlk_pointers){7, 1, 1, odd}, 1), -EINVAL);
	assert_int_equal(mlk_writer_pointers(
				 w, &(struct mlk_pointers){7, 1, MLK_MAX_POINTERS + 1, words}, 1),
			 -EINVAL);
	pass.ranges = back;
	assert_int_equal(mlk_writer_pass(w, &pass), -EINVAL);
	assert_int_equal(mlk_writer_finish(w, MLK_END_SIGNAL, 3000), 0);
	mlk_writer_free(w);
	close(fd);
}

/* How many words are read of @payload, and is it damaged? */
static bool damaged(uint16_t type, const void *payload, size_t len, size_t *nr)
{
	const struct mlk_chunk h = {.type = type, .raw_len = (uint32_t)len, .nr_records = 1};
	struct mlk_enc trace = {0};
	struct mlk_reader *r;
	struct mlk_record rec;
	bool lost;

	fuzz_file_header(&trace, 0);
	fuzz_chunk(&trace, h, payload, len);
	assert_int_equal(mlk_reader_open_mem(&r, trace.buf, trace.len), 0);
	mlk_reader_rewind(r, MLK_RECORD_POINTERS | MLK_RECORD_PASS);
	*nr = 0;
	while (mlk_reader_next(r, &rec) == 1)
		if (rec.type == MLK_RECORD_POINTERS)
			*nr += rec.pointers.nr;
	lost = mlk_reader_condition(r)->chunks_lost != 0;
	mlk_reader_free(r);
	mlk_enc_release(&trace);
	return lost;
}

/* Of the literal @bytes in a chunk of @type @words are read; it is @wrong, or not. */
#define CHECK(type, bytes, words, wrong)                                               \
	do {                                                                           \
		assert_int_equal(damaged(type, bytes, sizeof(bytes) - 1, &nr), wrong); \
		assert_int_equal(nr, words);                                           \
	} while (0)

#define PASS               \
	"\7\1\1\0"         \
	"\0\0\0\0\0\0\0\0" \
	"\5\0" /* tgid 7, from 0 to 5, no words */

static void wrong_ones_are_damage(void **state)
{
	size_t nr;

	(void)state;
	CHECK(MLK_CHUNK_POINTERS, "\7\1\2\2\2\2\1\1\2\2", 2, false);
	CHECK(MLK_CHUNK_POINTERS, "\7\1\2\3\2\2\1\1\1\2\2\0", 2, false); /* a later version */
	CHECK(MLK_CHUNK_POINTERS, "\7\1\2\1\2\1\1", 0, true);		 /* a column is missing */
	CHECK(MLK_CHUNK_POINTERS, "\7\1\3\2\2\2\1\1\2\2", 0, true);	 /* a word is missing */
	CHECK(MLK_CHUNK_POINTERS, "\7\1\2\2\2\2\1\0\2\2", 0, true);	 /* one address twice */
	CHECK(MLK_CHUNK_POINTERS, "\7\1\xff\xff\xff\x07\2\2\2\1\1\2\2", 0, true);
	CHECK(MLK_CHUNK_POINTERS, "\7\1\1\2\x0a\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\2", 0,
	      true); /* * 8 */
	CHECK(MLK_CHUNK_PASS, PASS "\0\0\0", 0, false);
	CHECK(MLK_CHUNK_PASS, PASS "\1\0\4\3\0\1x\0\0\0\0", 0, false);
	CHECK(MLK_CHUNK_PASS, PASS "\1\0\4\3\0\0\5\0\0\0", 0, true); /* more absent than there is */
	CHECK(MLK_CHUNK_PASS, PASS "\2\0\4\3\0\0\0\0\0\0", 0, true); /* a range is missing */
	CHECK(MLK_CHUNK_PASS, PASS "\0\1\7\1\x80\x80\x08\0", 0, true); /* register 17 */
	CHECK(MLK_CHUNK_PASS, PASS "\0\0\1\1\1", 0, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_and_passes_come_back),
		cmocka_unit_test(what_is_not_in_order_is_not_written),
		cmocka_unit_test(wrong_ones_are_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
