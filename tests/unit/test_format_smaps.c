/* test_format_smaps.c - SMAPS chunks, doc/trace-format.md 4.22 */
#include <errno.h>

#include "format/writer.h"
#include "tests/unit/format_outcome.h"
#include "tests/unit/format_world.h"

#define PAGE	 MLK_SMAPS_PAGE
#define MAPPINGS 30000
#define RUNS	 200000

static struct mlk_page_run runs[RUNS];

/* Two mappings that are alike but for their values; the second has so many runs that they are in
 * several records, and so many others follow that they are in several chunks. */
static struct mlk_smaps *make_mappings(void)
{
	struct mlk_smaps *all = calloc(MAPPINGS, sizeof(*all));

	assert_non_null(all);
	for (size_t i = 0; i < RUNS; i++)
		runs[i] = (struct mlk_page_run){(3 * i + 100) * PAGE, (3 * i + 101 + i % 2) * PAGE};
	for (size_t i = 0; i < MAPPINGS; i++) {
		all[i] = (struct mlk_smaps){.tgid = 7,
					    .snapshot = 3,
					    .time_ns = 1500,
					    .start = (i + 1) << 40,
					    .end = ((i + 1) << 40) + 2 * PAGE,
					    .perms = i % 8,
					    .offset = i * PAGE,
					    .path = i % 2 ? "/usr/lib/libredis.so" : "",
					    .known = 1u << MLK_SMAPS_RSS | 1u << MLK_SMAPS_DIRTY};
		all[i].value[MLK_SMAPS_RSS] = i;
		all[i].value[MLK_SMAPS_DIRTY] = UINT64_MAX - i;
	}
	all[1].start = 0;
	all[1].end = RUNS * 4ull * PAGE;
	all[0].start = all[0].end = 0;
	all[1].nr_pages = RUNS;
	all[1].pages = runs;
	return all;
}

static void check_mapping(const struct mlk_smaps *got, const struct mlk_smaps *expected)
{
	assert_int_equal(got->tgid, 7);
	assert_int_equal(got->snapshot, 3);
	assert_int_equal(got->time_ns, 1500);
	assert_int_equal(got->start, expected->start);
	assert_int_equal(got->end, expected->end);
	assert_int_equal(got->perms, expected->perms);
	assert_int_equal(got->offset, expected->offset);
	assert_string_equal(got->path, expected->path);
	if (!got->known)
		return;
	assert_int_equal(got->known, expected->known);
	assert_memory_equal(got->value, expected->value, sizeof(got->value));
}

static void mappings_and_their_pages_come_back(void **state)
{
	struct mlk_smaps *all = make_mappings();
	size_t i = 0, run = 0, chunks = 0;
	struct mlk_record rec;
	struct mlk_reader *r;
	struct trace t;
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_REDACTED);

	(void)state;
	assert_int_equal(mlk_writer_smaps(w, all, MAPPINGS), 0);
	assert_int_equal(mlk_writer_finish(w, MLK_END_SIGNAL, 3000), 0);
	mlk_writer_free(w);
	t = slurp(fd);
	assert_int_equal(mlk_reader_open_mem(&r, t.bytes, t.len), 0);
	mlk_reader_rewind(r, MLK_RECORD_SMAPS | MLK_RECORD_CHUNK);
	while (mlk_reader_next(r, &rec) == 1) {
		if (rec.type == MLK_RECORD_CHUNK) {
			chunks += rec.chunk.records == MLK_RECORD_SMAPS;
			continue;
		}
		if (rec.smaps.known)
			i++;
		assert_true(i >= 1 && i <= MAPPINGS);
		check_mapping(&rec.smaps, &all[i - 1]);
		for (size_t k = 0; k < rec.smaps.nr_pages; k++, run++)
			assert_memory_equal(&rec.smaps.pages[k], &runs[run], sizeof(runs[run]));
	}
	assert_int_equal(i, MAPPINGS);
	assert_int_equal(run, RUNS);
	assert_in_range(chunks, 2, 100);
	assert_int_equal(mlk_reader_condition(r)->chunks_lost, 0);
	mlk_reader_free(r);
	free(t.bytes);
	free(all);
}

static void what_is_not_in_order_is_not_written(void **state)
{
	static const struct mlk_page_run odd[] = {{PAGE, PAGE + 1}}, empty[] = {{PAGE, PAGE}},
					 back[] = {{2 * PAGE, 3 * PAGE}, {PAGE, 2 * PAGE}},
					 behind[] = {{3 * PAGE, 5 * PAGE}};
	static const struct {
		const struct mlk_page_run *pages;
		size_t nr;
	} wrong[] = {{odd, 1}, {empty, 1}, {back, 2}, {behind, 1}};
	struct mlk_smaps smaps = {.end = 4 * PAGE, .path = "", .known = 1};
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		smaps.pages = wrong[i].pages;
		smaps.nr_pages = wrong[i].nr;
		assert_int_equal(mlk_writer_smaps(w, &smaps, 1), -EINVAL);
	}
	smaps = (struct mlk_smaps){.start = 1, .path = ""};
	assert_int_equal(mlk_writer_smaps(w, &smaps, 1), -EINVAL);
	assert_int_equal(mlk_writer_finish(w, MLK_END_SIGNAL, 3000), 0);
	mlk_writer_free(w);
	close(fd);
}

/* How many runs are read of @payload, and is it damaged? */
static bool damaged(const void *payload, size_t len, size_t *nr)
{
	const struct mlk_chunk h = {
		.type = MLK_CHUNK_SMAPS, .raw_len = (uint32_t)len, .nr_records = 1};
	struct mlk_enc trace = {0};
	struct mlk_reader *r;
	struct mlk_record rec;
	bool lost;

	fuzz_file_header(&trace, 0);
	fuzz_chunk(&trace, h, payload, len);
	assert_int_equal(mlk_reader_open_mem(&r, trace.buf, trace.len), 0);
	mlk_reader_rewind(r, MLK_RECORD_SMAPS);
	for (*nr = 0; mlk_reader_next(r, &rec) == 1;)
		if (rec.type == MLK_RECORD_SMAPS)
			*nr += rec.smaps.nr_pages;
	lost = mlk_reader_condition(r)->chunks_lost != 0;
	mlk_reader_free(r);
	mlk_enc_release(&trace);
	return lost;
}

#define CHECK(bytes, runs, wrong)                                                \
	do {                                                                     \
		assert_int_equal(damaged(bytes, sizeof(bytes) - 1, &nr), wrong); \
		assert_int_equal(nr, runs);                                      \
	} while (0)

#define HEAD   "\1\7\1"	      /* one mapping of process 7, snapshot 1 */
#define PAGES4 "\0\x80\x80\1" /* four pages from 0 on */

static void wrong_ones_are_damage(void **state)
{
	size_t nr;

	(void)state;
	CHECK(HEAD PAGES4 "\3\0\0\1\x05\2\1\1\1\1", 2, false);
	CHECK(HEAD PAGES4 "\3\0\0\xc1\0\x05\6\1\1\2", 1, false); /* values of a later version */
	CHECK(HEAD PAGES4 "\3\0\0\0\1\1\4", 0, true);		 /* beyond its end */
	CHECK(HEAD PAGES4 "\3\0\0\0\1\4\1", 0, true);
	CHECK(HEAD PAGES4 "\3\0\0\0\1\1\0", 0, true); /* an empty run */
	CHECK(HEAD PAGES4 "\3\0\0\0\2\1\1", 0, true); /* one is missing */
	CHECK(HEAD PAGES4 "\3\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\1\1", 0, true);
	CHECK(HEAD "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\2\3\0\0\0\0", 0, true); /* its end */
	CHECK("\2\7\1" PAGES4 "\3\0\0\0\1\1\1", 1, true); /* a mapping is missing */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mappings_and_their_pages_come_back),
		cmocka_unit_test(what_is_not_in_order_is_not_written),
		cmocka_unit_test(wrong_ones_are_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
