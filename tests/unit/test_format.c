/* test_format.c - what the writer was given is what the reader gives back, or nothing at all */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/chunk/chunk.h"
#include "format/chunk/codec.h"
#include "format/reader.h"
#include "tests/unit/format_world.h"

static void events_come_back_as_they_were(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		int mode = (int)(seed % 3);
		struct trace t = make_mode_trace(seed, MAX_EVENTS, 1000, mode);
		struct world *world = world_new(seed);
		struct mlk_reader *r;
		struct mlk_record rec;
		int nr = 0, got;

		assert_int_equal(mlk_reader_open_mem(&r, t.bytes, t.len), 0);
		assert_int_equal(mlk_reader_meta(r)->stack_mode, mode);
		mlk_reader_rewind(r, MLK_RECORD_EVENT);
		while ((got = mlk_reader_next(r, &rec)) == 1) {
			struct mlk_event ev = world_event(world);

			assert_int_equal(rec.type, MLK_RECORD_EVENT);
			assert_same_event(&ev, &rec.event, mode);
			nr++;
		}
		assert_int_equal(got, 0);
		assert_int_equal(nr, MAX_EVENTS);
		assert_true(mlk_reader_condition(r)->ended);
		assert_int_equal(mlk_reader_condition(r)->reason, MLK_END_EXITED);
		assert_true(mlk_reader_condition(r)->end_ns == 77);
		mlk_reader_free(r);
		free(world);
		free(t.bytes);
	}
}

/* Bytes of all EVENTS chunks before compression, by their headers. */
static size_t raw_bytes(const struct trace *t)
{
	size_t at = MLK_FILE_HEADER, sum = 0;

	for (; at < t->len; at += MLK_CHUNK_HEADER + mlk_get_u32(t->bytes + at + 24))
		if (mlk_get_u16(t->bytes + at + 12) == MLK_CHUNK_EVENTS)
			sum += mlk_get_u32(t->bytes + at + 28);
	return sum;
}

static void unchanged_stacks_are_not_stored_again(void **state)
{
	static uint8_t stack[468 * 128];
	struct mlk_event ev = {.kind = MLK_ALLOC, .nr_regs = 17, .stack = stack};
	uint64_t random = 99;
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);
	struct trace t;

	(void)state;
	for (size_t i = 0; i < sizeof(stack); i++)
		stack[i] = (uint8_t)rnd(&random);
	ev.stack_len = sizeof(stack);
	ev.regs[MLK_SP_REG] = STACK_TOP - sizeof(stack);
	for (int i = 0; i < 1000; i++) {
		ev.addr = rnd(&random);
		stack[i % 128]++;
		assert_int_equal(mlk_writer_event(w, &ev), 0);
	}
	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 0), 0);
	mlk_writer_free(w);
	t = slurp(fd);
	/* The whole stack once, then one word and some numbers for each event. */
	assert_in_range(raw_bytes(&t), sizeof(stack) + 999 * 8, sizeof(stack) * 5 / 3 + 1000 * 40);
	free(t.bytes);
}

/* What @w wrote to @fd, which has no end, for reading; both are closed by close_reader(). */
static struct mlk_reader *reader_of(struct trace *t, int fd, struct mlk_writer *w)
{
	struct mlk_reader *r;

	mlk_writer_free(w);
	*t = slurp(fd);
	assert_int_equal(mlk_reader_open_mem(&r, t->bytes, t->len), 0);
	return r;
}

static void close_reader(struct mlk_reader *r, struct trace *t)
{
	struct mlk_record rec;

	assert_int_equal(mlk_reader_next(r, &rec), 0);
	assert_false(mlk_reader_condition(r)->ended);
	mlk_reader_free(r);
	free(t->bytes);
}

static void meta_comes_back(void **state)
{
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);
	struct trace t;
	struct mlk_reader *r;

	(void)state;
	assert_int_equal(mlk_writer_flush(w), 0);
	r = reader_of(&t, fd, w);
	assert_string_equal(mlk_reader_meta(r)->command, "server -x");
	assert_string_equal(mlk_reader_meta(r)->machine, "x86_64");
	assert_int_equal(mlk_reader_meta(r)->tgid, 4711);
	assert_int_equal(mlk_reader_meta(r)->start_ns, 1000);
	close_reader(r, &t);
}

static const struct mlk_id library_id = {.len = 3, .bytes = {MLK_ID_BUILD_ID, 0xab, 0xcd}};

static void maps_come_back(void **state)
{
	const struct mlk_mapping mappings[] = {
		{.start = 0x1000,
		 .end = 0x3000,
		 .offset = 0x1000,
		 .inode = 5,
		 .dev_major = 8,
		 .dev_minor = 1,
		 .perms = MLK_PERM_R | MLK_PERM_X,
		 .id = library_id,
		 .path = "/lib/x.so"},
		{.start = 0x3000, .end = 0xffffffffff601000ull, .perms = MLK_PERM_R, .path = ""},
	};
	const struct mlk_maps maps = {.tgid = 4711, .time_ns = 42, .nr = 2, .mappings = mappings};
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);
	struct mlk_record rec;
	struct mlk_reader *r;
	struct trace t;

	(void)state;
	assert_int_equal(mlk_writer_maps(w, &maps), 0);
	r = reader_of(&t, fd, w);
	assert_int_equal(mlk_reader_next(r, &rec), 1);
	assert_int_equal(rec.type, MLK_RECORD_MAPS);
	assert_int_equal(rec.maps.nr, 2);
	assert_string_equal(rec.maps.mappings[0].path, "/lib/x.so");
	assert_true(rec.maps.mappings[1].end == mappings[1].end && rec.maps.time_ns == 42);
	assert_memory_equal(&rec.maps.mappings[0].id, &library_id, sizeof(library_id));
	close_reader(r, &t);
}

/* The pieces of the module that comes next, put together in @copy; returns how many there are. @rec
 * is then the record behind them. */
static int join_pieces(struct mlk_reader *r, uint8_t *copy, struct mlk_record *rec)
{
	int pieces = 0;

	for (; mlk_reader_next(r, rec) == 1 && rec->module.image_len; pieces++) {
		assert_int_equal(rec->type, MLK_RECORD_MODULE);
		memcpy(copy + rec->module.offset, rec->module.piece, rec->module.piece_len);
	}
	return pieces;
}

static void modules_come_back(void **state)
{
	const size_t image_len = (5u << 20) / 2;
	uint8_t *image = calloc(1, image_len), *copy = calloc(1, image_len);
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);
	struct mlk_reader *r;
	struct mlk_record rec;
	struct trace t;
	uint64_t random = 7;

	(void)state;
	for (size_t i = 0; i < image_len; i++)
		image[i] = (uint8_t)rnd(&random);
	assert_int_equal(mlk_writer_module(w, &library_id, "/lib/x.so", image, image_len), 0);
	assert_int_equal(mlk_writer_module(w, &library_id, "/lib/gone.so", NULL, 0), 0);
	r = reader_of(&t, fd, w);
	assert_int_equal(join_pieces(r, copy, &rec), 3);
	assert_memory_equal(image, copy, image_len);
	assert_int_equal(rec.type, MLK_RECORD_MODULE);
	assert_string_equal(rec.module.path, "/lib/gone.so");
	close_reader(r, &t);
	free(image);
	free(copy);
}

static void threads_come_back(void **state)
{
	const struct mlk_thread threads[] = {{4711, 4711, "main"}, {4711, 4712, "worker"}};
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);
	struct mlk_record rec;
	struct mlk_reader *r;
	struct trace t;

	(void)state;
	assert_int_equal(mlk_writer_threads(w, threads, 2), 0);
	r = reader_of(&t, fd, w);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(mlk_reader_next(r, &rec), 1);
		assert_int_equal(rec.type, MLK_RECORD_THREAD);
		assert_int_equal(rec.thread.tid, threads[i].tid);
		assert_string_equal(rec.thread.name, threads[i].name);
	}
	close_reader(r, &t);
}

static void other_versions_are_refused(void **state)
{
	uint8_t bytes[MLK_FILE_HEADER];
	struct mlk_header h = {.major = 2, .len = MLK_FILE_HEADER};
	struct mlk_reader *r;

	(void)state;
	mlk_file_header_pack(bytes, &h);
	assert_int_equal(mlk_reader_open_mem(&r, bytes, sizeof(bytes)), MLK_E_VERSION);
	h.major = 1;
	h.required = MLK_REQUIRED_KNOWN + 1;
	mlk_file_header_pack(bytes, &h);
	assert_int_equal(mlk_reader_open_mem(&r, bytes, sizeof(bytes)), MLK_E_VERSION);
	h.required = 0;
	mlk_file_header_pack(bytes, &h);
	bytes[20] ^= 1;
	assert_int_equal(mlk_reader_open_mem(&r, bytes, sizeof(bytes)), MLK_E_HEADER);
}

static void losses_stand_in_every_header(void **state)
{
	struct mlk_losses losses = {
		.count = {[MLK_LOST_ALLOC] = 3, [MLK_LOST_FREE] = 5, [MLK_LOST_RETURN] = 7}};
	struct mlk_event ev = {.kind = MLK_FREE, .addr = 1};
	struct mlk_reader *r;
	struct mlk_record rec;
	struct trace t;
	size_t cut;
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);

	(void)state;
	mlk_writer_set_losses(w, &losses);
	assert_int_equal(mlk_writer_event(w, &ev), 0);
	assert_int_equal(mlk_writer_flush(w), 0);
	mlk_writer_free(w);
	t = slurp(fd);
	/* With the LOSSES chunk, all kinds are known; without it, what the headers say. */
	for (int whole = 1; whole >= 0; whole--) {
		const struct mlk_losses *found;

		cut = whole ? t.len : t.len - 1;
		assert_int_equal(mlk_reader_open_mem(&r, t.bytes, cut), 0);
		while (mlk_reader_next(r, &rec) == 1)
			;
		found = &mlk_reader_condition(r)->losses;
		assert_int_equal(found->count[MLK_LOST_ALLOC], 3);
		assert_int_equal(found->count[MLK_LOST_FREE], 5);
		assert_int_equal(found->count[MLK_LOST_RETURN], whole ? 7 : 0);
		mlk_reader_free(r);
	}
	free(t.bytes);
}

static void varints_come_back(void **state)
{
	static const uint64_t values[] = {0,	 1,	     127,	 128,	    16383,
					  16384, UINT32_MAX, UINT64_MAX, 1ull << 63};
	struct mlk_enc e = {0};
	struct mlk_dec d;
	static const uint8_t overlong[] = {0xff, 0xff, 0xff, 0xff, 0xff,
					   0xff, 0xff, 0xff, 0xff, 0x02};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		mlk_enc_uvar(&e, values[i]);
		mlk_enc_delta(&e, values[i], 1000);
	}
	d = (struct mlk_dec){.at = e.buf, .end = e.buf + e.len};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		assert_true(mlk_dec_uvar(&d) == values[i]);
		assert_true(mlk_dec_delta(&d, 1000) == values[i]);
	}
	assert_true(!d.bad && d.at == d.end);
	mlk_dec_uvar(&d);
	assert_true(d.bad);
	mlk_enc_release(&e);
	d = (struct mlk_dec){.at = overlong, .end = overlong + sizeof(overlong)};
	mlk_dec_uvar(&d);
	assert_true(d.bad);
}

/* The example of doc/trace-format.md section 6. */
static void the_example_of_the_specification_reads(void **state)
{
	static const uint8_t example[] = {
		0xf5, 0x4d, 0x4c, 0x4b, 0xd,  0xa,  0x1a, 0xa,	1,    0,    3,	  0,	0x40, 0,
		0,    0,    1,	  0,	0,    0,    0,	  0,	0,    0,    0,	  0,	0,    0,
		0,    0,    0,	  0,	0x44, 0x33, 0x22, 0x11, 0,    0,    0,	  0,	0,    0,
		0,    0,    0,	  0,	0,    0,    0,	  0,	0,    0,    0,	  0,	0,    0,
		0,    0,    0,	  0,	0xc8, 0xba, 0xc8, 0x90, 0xf5, 0x43, 0x48, 0x4b, 0xd,  0xa,
		0x1a, 0xa,  0x44, 0x33, 0x22, 0x11, 5,	  0,	0,    0,    0,	  0,	0,    0,
		0,    0,    0,	  0,	8,    0,    0,	  0,	8,    0,    0,	  0,	0,    0,
		0,    0,    0,	  0,	0,    0,    0,	  0,	0,    0,    0,	  0,	0,    0,
		0,    0,    0,	  0,	0,    0,    0,	  0,	0,    0,    0,	  0,	0,    0,
		0,    0,    0,	  0,	0,    0,    0,	  0,	0,    0,    1,	  0,	0,    0,
		0x79, 0x65, 0xc6, 0x1a, 0,    0,    0,	  0,	0,    0,    0,	  0,	0,    0,
		0,    0,    0x93, 0xe1, 0xf1, 0xce, 1,	  7,	7,    4,    0x6d, 0x61, 0x69, 0x6e};
	struct mlk_reader *r;
	struct mlk_record rec;

	(void)state;
	assert_int_equal(mlk_reader_open_mem(&r, example, sizeof(example)), 0);
	assert_int_equal(mlk_reader_next(r, &rec), 1);
	assert_int_equal(rec.type, MLK_RECORD_THREAD);
	assert_int_equal(rec.thread.tid, 7);
	assert_string_equal(rec.thread.name, "main");
	assert_int_equal(mlk_reader_next(r, &rec), 0);
	mlk_reader_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(varints_come_back),
		cmocka_unit_test(the_example_of_the_specification_reads),
		cmocka_unit_test(events_come_back_as_they_were),
		cmocka_unit_test(unchanged_stacks_are_not_stored_again),
		cmocka_unit_test(meta_comes_back),
		cmocka_unit_test(maps_come_back),
		cmocka_unit_test(modules_come_back),
		cmocka_unit_test(threads_come_back),
		cmocka_unit_test(other_versions_are_refused),
		cmocka_unit_test(losses_stand_in_every_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
