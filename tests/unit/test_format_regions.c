/* test_format_regions.c - REGIONS chunks, doc/trace-format.md 4.15 */
#include <errno.h>

#include "format/record/regions.h"
#include "format/writer.h"
#include "tests/unit/format_outcome.h"
#include "tests/unit/format_world.h"

static const struct mlk_mapping mappings[] = {
	{.start = 0x1000, .end = 0x2000, .perms = 1, .inode = 7, .dev_major = 8, .path = "/a"},
	{.start = 0x2000, .end = 0x3000, .perms = 3, .path = ""},
	{.start = 0x5000, .end = 0x6000, .perms = 11, .offset = 0x1000, .inode = 7, .path = "/a"},
	{.start = 0x7000, .end = 0x7001, .perms = 3, .path = "[heap]"},
	{.start = UINT64_MAX - 1, .end = UINT64_MAX, .offset = UINT64_MAX, .path = "/\xff"},
};

#define NR (sizeof(mappings) / sizeof(mappings[0]))

static void check_same(const struct mlk_mapping *a, const struct mlk_mapping *b)
{
	assert_true(a->start == b->start && a->end == b->end && a->offset == b->offset);
	assert_true(a->perms == b->perms && a->inode == b->inode);
	assert_true(a->dev_major == b->dev_major && a->dev_minor == b->dev_minor);
	assert_string_equal(a->path, b->path);
}

static void all_comes_back_and_only_to_those_who_ask(void **state)
{
	const struct mlk_regions all = {7, 1500, 3, NR, mappings}, none = {.tgid = 8};
	const struct mlk_mapping back[] = {mappings[1], mappings[0]};
	const struct mlk_regions wrong = {.tgid = 7, .nr = 2, .mappings = back};
	struct mlk_writer *w;
	struct mlk_reader *r;
	struct mlk_record rec;
	struct trace t;
	int fd;

	(void)state;
	w = open_writer(&fd, MLK_STACK_RAW);
	assert_int_equal(mlk_writer_regions(w, &all), 0);
	assert_int_equal(mlk_writer_regions(w, &wrong), -EINVAL);
	assert_int_equal(mlk_writer_regions(w, &none), 0);
	assert_int_equal(mlk_writer_finish(w, MLK_END_SIGNAL, 2000), 0);
	mlk_writer_free(w);
	t = slurp(fd);
	assert_int_equal(mlk_reader_open_mem(&r, t.bytes, t.len), 0);
	while (mlk_reader_next(r, &rec) == 1)
		assert_int_not_equal(rec.type, MLK_RECORD_REGIONS);
	mlk_reader_rewind(r, MLK_RECORD_REGIONS);
	assert_int_equal(mlk_reader_next(r, &rec), 1);
	assert_int_equal(rec.type, MLK_RECORD_REGIONS);
	assert_true(rec.regions.tgid == 7 && rec.regions.time_ns == 1500);
	assert_true(rec.regions.left_out == 3 && rec.regions.nr == NR);
	for (size_t i = 0; i < NR; i++)
		check_same(&rec.regions.mappings[i], &mappings[i]);
	assert_int_equal(mlk_reader_next(r, &rec), 1);
	assert_true(rec.regions.tgid == 8 && rec.regions.nr == 0);
	assert_int_equal(mlk_reader_next(r, &rec), 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_unknown, 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_lost, 0);
	mlk_reader_free(r);
	free(t.bytes);
}

/* @nr mappings whose paths have @len bytes, of which each is another one, into a chunk: it is not
 * too long, and what is not in it is counted. */
static void check_cut(size_t nr, size_t len, bool cut)
{
	struct mlk_mapping *many = calloc(nr, sizeof(*many)), *room = NULL;
	char *paths = malloc(nr * (len + 1));
	struct mlk_regions all = {.tgid = 7, .nr = nr, .mappings = many}, read;
	struct mlk_arena text = {0};
	struct mlk_enc e = {0};
	struct mlk_dec d;

	assert_true(many && paths);
	for (size_t i = 0; i < nr; i++) {
		char *path = paths + i * (len + 1);

		memset(path, 'x', len);
		path[len] = '\0';
		for (size_t at = 0, n = i; n && at < len; n /= 10)
			path[at++] = (char)('0' + n % 10);
		many[i] = (struct mlk_mapping){
			.start = i * 8192, .end = i * 8192 + 4096, .path = path};
	}
	assert_int_equal(mlk_regions_encode(&e, &all), 0);
	assert_false(e.failed);
	assert_true(e.len < MLK_RAW_MAX);
	d = (struct mlk_dec){.at = e.buf, .end = e.buf + e.len};
	assert_int_equal(mlk_regions_decode(&d, &text, &room, &read), 0);
	assert_true(read.nr + read.left_out == nr);
	assert_true(cut == (read.left_out != 0));
	assert_true(read.nr && !strcmp(read.mappings[read.nr - 1].path, many[read.nr - 1].path));
	mlk_arena_release(&text);
	mlk_enc_release(&e);
	free(room);
	free(paths);
	free(many);
}

static void what_has_no_room_is_counted(void **state)
{
	(void)state;
	check_cut(65530, 0, false); /* as many as a process may have by default */
	check_cut(65530, 20, false);
	check_cut(65530, 200, true);
	check_cut(2000, MLK_MAX_STRING, true);
	check_cut(MLK_MAX_REGIONS + 1, 0, true);
}

/* How many mappings are read of @payload, @len bytes; *@damaged: it is. */
static size_t read_regions(const void *payload, size_t len, bool *damaged)
{
	const struct mlk_chunk h = {
		.type = MLK_CHUNK_REGIONS, .raw_len = (uint32_t)len, .nr_records = 1};
	struct mlk_enc trace = {0};
	struct mlk_record rec;
	struct mlk_reader *r;
	size_t nr = 0;

	fuzz_file_header(&trace, 0);
	fuzz_chunk(&trace, h, payload, len);
	assert_int_equal(mlk_reader_open_mem(&r, trace.buf, trace.len), 0);
	for (mlk_reader_rewind(r, MLK_RECORD_REGIONS); mlk_reader_next(r, &rec) == 1;)
		nr += rec.regions.nr;
	*damaged = mlk_reader_condition(r)->chunks_lost != 0;
	mlk_reader_free(r);
	mlk_enc_release(&trace);
	return nr;
}

#define HEAD  "\7\0\0\0\0\0\0\0\0\0"
#define FIRST "\4\3\3\0\0\0\0\0\1x"
#define NEXT  "\4\3\3\0\0\0\0\1"

/* @nr mappings are read of the literal @bytes, which are damaged, or not. */
#define CHECK(bytes, nr, damage)                                                        \
	do {                                                                            \
		assert_int_equal(read_regions(bytes, sizeof(bytes) - 1, &damaged), nr); \
		assert_int_equal(damaged, damage);                                      \
	} while (0)

static void wrong_ones_are_damage(void **state)
{
	bool damaged;

	(void)state;
	CHECK(HEAD "\0", 0, false);
	CHECK(HEAD "\2" FIRST NEXT, 2, false);
	CHECK(HEAD "\1" FIRST "behind", 1, false);
	CHECK(HEAD "\2" FIRST, 0, true);			       /* one is missing */
	CHECK(HEAD "\1" NEXT, 0, true);				       /* a path before the first */
	CHECK(HEAD "\2" FIRST "\4\3\3\0\0\0\0\2", 0, true);	       /* and before the second */
	CHECK(HEAD "\xff\xff\xff\xff\x0f" FIRST, 0, true);	       /* 2^32 - 1 of them */
	CHECK(HEAD "\x80\x80\x10" FIRST NEXT, 0, true);		       /* 262,144 */
	CHECK(HEAD "\1\4\3\3\0\0\0\0\0\1\0", 0, true);		       /* a NUL in a path */
	CHECK(HEAD "\1\4\3\3\0\xff\xff\xff\xff\x1f\0\0\0\0", 0, true); /* a device of 33 bits */
	CHECK(HEAD "\2" FIRST "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\3\3\0\0\0\0\1", 0, true);
}

static void one_that_is_cut_anywhere_is_damage(void **state)
{
	static const char two[] = HEAD "\2" FIRST NEXT;
	bool damaged;

	(void)state;
	for (size_t len = 1; len < sizeof(two) - 1; len++) {
		assert_int_equal(read_regions(two, len, &damaged), 0);
		assert_true(damaged);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_comes_back_and_only_to_those_who_ask),
		cmocka_unit_test(what_has_no_room_is_counted),
		cmocka_unit_test(wrong_ones_are_damage),
		cmocka_unit_test(one_that_is_cut_anywhere_is_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
