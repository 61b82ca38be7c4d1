/* test_format.c - what the writer was given is what the reader gives back, or nothing at all */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/chunk/chunk.h"
#include "format/chunk/codec.h"
#include "format/reader.h"
#include "tests/unit/format_world.h"

/* Is the word at @at in @ev's stack one that an unwinder may need? */
static bool needed(uint64_t word, uint64_t sp)
{
	return word - CODE < CODE_LEN || (word >= sp && word < sp + (3u << 20));
}

/* The stack that came back, @b, is that of @a as @mode keeps it. */
static void assert_same_stack(const struct mlk_event *a, const struct mlk_event *b, int mode)
{
	uint64_t sp = a->regs[MLK_SP_REG], from = mode == MLK_STACK_FILTERED ? 128 - sp % 8 : 0;

	assert_int_equal(a->stack_len, b->stack_len);
	if (mode == MLK_STACK_RAW || a->stack_len <= from)
		from = a->stack_len;
	if (from)
		assert_memory_equal(a->stack, b->stack, from);
	/* Whole words of the address space; what begins before the stack is left out here. */
	for (uint64_t at = (sp + from + 7) & ~7ull; at + 8 <= sp + a->stack_len; at += 8) {
		uint64_t was, is;

		memcpy(&was, a->stack + (at - sp), sizeof(was));
		memcpy(&is, b->stack + (at - sp), sizeof(is));
		assert_true(is == was || is == 0);
		if (needed(was, sp))
			assert_true(is == was);
		if (was && was < 1000)
			assert_true(is == 0);
	}
}

static void assert_same_regs(const struct mlk_event *a, const struct mlk_event *b, int mode)
{
	assert_int_equal(a->nr_regs, b->nr_regs);
	for (int r = 0; r < a->nr_regs; r++)
		assert_true(a->regs[r] == b->regs[r] ||
			    (mode == MLK_STACK_REDACTED && r != MLK_SP_REG && !b->regs[r] &&
			     !needed(a->regs[r], a->regs[MLK_SP_REG])));
}

static void assert_same_event(const struct mlk_event *a, const struct mlk_event *b, int mode)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->func, b->func);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->tgid, b->tgid);
	assert_int_equal(a->tid, b->tid);
	assert_true(a->time_ns == b->time_ns && a->addr == b->addr);
	assert_true(a->size == b->size && a->alloc_id == b->alloc_id);
	assert_same_regs(a, b, mode);
	assert_same_stack(a, b, mode);
}

static struct trace make_trace(uint64_t seed, int nr, int chunk)
{
	return make_mode_trace(seed, nr, chunk, MLK_STACK_RAW);
}

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

static void meta_maps_modules_threads_come_back(void **state)
{
	const struct mlk_mapping mappings[] = {
		{.start = 0x1000,
		 .end = 0x3000,
		 .offset = 0x1000,
		 .inode = 5,
		 .dev_major = 8,
		 .dev_minor = 1,
		 .perms = MLK_PERM_R | MLK_PERM_X,
		 .id = {.len = 3, .bytes = {MLK_ID_BUILD_ID, 0xab, 0xcd}},
		 .path = "/lib/x.so"},
		{.start = 0x3000, .end = 0xffffffffff601000ull, .perms = MLK_PERM_R, .path = ""},
	};
	const struct mlk_maps maps = {.tgid = 4711, .time_ns = 42, .nr = 2, .mappings = mappings};
	const struct mlk_thread threads[] = {{4711, 4711, "main"}, {4711, 4712, "worker"}};
	const size_t image_len = (5u << 20) / 2;
	uint8_t *image = calloc(1, image_len), *copy = calloc(1, image_len);
	struct mlk_reader *r;
	struct mlk_record rec;
	struct trace t;
	uint64_t random = 7, pieces = 0;
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);

	(void)state;
	for (size_t i = 0; i < image_len; i++)
		image[i] = (uint8_t)rnd(&random);
	assert_int_equal(mlk_writer_maps(w, &maps), 0);
	assert_int_equal(mlk_writer_module(w, &mappings[0].id, "/lib/x.so", image, image_len), 0);
	assert_int_equal(mlk_writer_module(w, &mappings[0].id, "/lib/gone.so", NULL, 0), 0);
	assert_int_equal(mlk_writer_threads(w, threads, 2), 0);
	mlk_writer_free(w);
	t = slurp(fd);
	assert_int_equal(mlk_reader_open_mem(&r, t.bytes, t.len), 0);
	assert_string_equal(mlk_reader_meta(r)->command, "server -x");
	assert_string_equal(mlk_reader_meta(r)->machine, "x86_64");
	assert_int_equal(mlk_reader_meta(r)->tgid, 4711);
	assert_int_equal(mlk_reader_meta(r)->start_ns, 1000);
	assert_int_equal(mlk_reader_next(r, &rec), 1);
	assert_int_equal(rec.type, MLK_RECORD_MAPS);
	assert_int_equal(rec.maps.nr, 2);
	assert_string_equal(rec.maps.mappings[0].path, "/lib/x.so");
	assert_true(rec.maps.mappings[1].end == mappings[1].end && rec.maps.time_ns == 42);
	assert_memory_equal(&rec.maps.mappings[0].id, &mappings[0].id, sizeof(mappings[0].id));
	while (mlk_reader_next(r, &rec) == 1 && rec.module.image_len) {
		assert_int_equal(rec.type, MLK_RECORD_MODULE);
		memcpy(copy + rec.module.offset, rec.module.piece, rec.module.piece_len);
		pieces++;
	}
	assert_int_equal(pieces, 3);
	assert_memory_equal(image, copy, image_len);
	assert_string_equal(rec.module.path, "/lib/gone.so");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(mlk_reader_next(r, &rec), 1);
		assert_int_equal(rec.type, MLK_RECORD_THREAD);
		assert_int_equal(rec.thread.tid, threads[i].tid);
		assert_string_equal(rec.thread.name, threads[i].name);
	}
	assert_int_equal(mlk_reader_next(r, &rec), 0);
	assert_false(mlk_reader_condition(r)->ended);
	mlk_reader_free(r);
	free(t.bytes);
	free(image);
	free(copy);
}

/* Read all events of @bytes and check that each is one of the world's, in order.  Returns their
 * number, or the error of opening.  *lost: chunks the reader says are lost. */
static int check_damaged(const uint8_t *bytes, size_t len, uint64_t seed, uint64_t *lost)
{
	struct world *world = world_new(seed);
	struct mlk_reader *r;
	struct mlk_record rec;
	int nr = 0, at = 0, got, err;

	err = mlk_reader_open_mem(&r, bytes, len);
	if (err) {
		assert_null(r);
		free(world);
		return err;
	}
	while ((got = mlk_reader_next(r, &rec)) == 1) {
		struct mlk_event ev;

		/* Events may be missing, never others than those that were written. */
		do {
			assert_true(at++ < MAX_EVENTS);
			ev = world_event(world);
		} while (ev.time_ns != rec.event.time_ns || ev.addr != rec.event.addr);
		assert_same_event(&ev, &rec.event, MLK_STACK_RAW);
		nr++;
	}
	assert_int_equal(got, 0);
	*lost = mlk_reader_condition(r)->chunks_lost;
	mlk_reader_free(r);
	free(world);
	return nr;
}

/* Whole chunks in the first @len bytes, and the events in them, by the lengths in their headers. */
static int whole_chunks(const uint8_t *bytes, size_t len, int *events)
{
	size_t at = MLK_FILE_HEADER;
	int nr = 0;

	*events = 0;
	while (at + MLK_CHUNK_HEADER <= len) {
		size_t next = at + MLK_CHUNK_HEADER + mlk_get_u32(bytes + at + 24);

		if (next > len)
			break;
		if (mlk_get_u16(bytes + at + 12) == MLK_CHUNK_EVENTS)
			*events += (int)mlk_get_u32(bytes + at + 72);
		nr++;
		at = next;
	}
	return nr;
}

static void a_cut_at_every_byte_leaves_the_whole_chunks(void **state)
{
	struct trace t = make_trace(5, SMALL_TRACE, 8);

	(void)state;
	for (size_t cut = 0; cut < t.len; cut++) {
		uint8_t *copy = malloc(cut + 1); /* of the exact size, for ASan */
		uint64_t lost;
		int events, chunks = whole_chunks(t.bytes, cut, &events), got;

		memcpy(copy, t.bytes, cut);
		got = check_damaged(copy, cut, 5, &lost);
		if (cut < MLK_MAGIC_LEN)
			assert_int_equal(got, MLK_E_MAGIC);
		else if (!chunks)
			assert_int_equal(got, MLK_E_EMPTY);
		else
			assert_int_equal(got, events);
		free(copy);
	}
	free(t.bytes);
}

static void random_payloads_with_right_checksums_do_no_harm(void **state)
{
	uint64_t random = 4242;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		struct mlk_header fh = {.major = 1, .len = MLK_FILE_HEADER, .salt = 9};
		struct mlk_chunk ch = {.salt = 9, .type = (uint16_t)(1 + rnd(&random) % 8)};
		uint8_t bytes[MLK_FILE_HEADER + MLK_CHUNK_HEADER + 200];
		uint8_t *payload = bytes + MLK_FILE_HEADER + MLK_CHUNK_HEADER;
		struct mlk_reader *r;
		struct mlk_record rec;
		int err;

		for (int b = 0; b < 200; b++) {
			payload[b] = (uint8_t)rnd(&random);
			if (rnd(&random) % 2)
				payload[b] &= 7;
		}
		ch.stored_len = ch.raw_len = (uint32_t)(rnd(&random) % 200);
		ch.payload_crc = mlk_crc32(payload, ch.stored_len);
		mlk_file_header_pack(bytes, &fh);
		mlk_chunk_header_pack(bytes + MLK_FILE_HEADER, &ch);
		err = mlk_reader_open_mem(&r, bytes,
					  MLK_FILE_HEADER + MLK_CHUNK_HEADER + ch.stored_len);
		assert_true(err == 0 || err == MLK_E_EMPTY);
		while (!err && mlk_reader_next(r, &rec) == 1)
			;
		mlk_reader_free(r);
	}
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
	h.required = 4;
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

static void a_full_disk_leaves_whole_chunks(void **state)
{
	struct world *world = world_new(3);
	int fd, err = 0, events;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);
	struct trace t;
	uint64_t lost = 0;

	(void)state;
	/* A sealed memfd does not grow: write(2) fails as on a full disk, but for the errno. */
	for (int i = 0; i < 200 && !err; i++) {
		struct mlk_event ev = world_event(world);

		err = mlk_writer_event(w, &ev);
		if (!err)
			err = mlk_writer_flush(w);
		if (i == 100)
			assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	}
	assert_int_equal(err, -EPERM);
	assert_int_equal(mlk_writer_flush(w), -EPERM);
	assert_int_equal(mlk_writer_finish(w, MLK_END_ERROR, 0), -EPERM);
	mlk_writer_free(w);
	free(world);
	t = slurp(fd);
	whole_chunks(t.bytes, t.len, &events);
	assert_int_equal(check_damaged(t.bytes, t.len, 3, &lost), events);
	/* The chunk of event 100 was still on its way when the disk became full, or was not. */
	assert_in_range(events, 90, 101);
	assert_int_equal(lost, 0);
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
		cmocka_unit_test(meta_maps_modules_threads_come_back),
		cmocka_unit_test(a_cut_at_every_byte_leaves_the_whole_chunks),
		cmocka_unit_test(random_payloads_with_right_checksums_do_no_harm),
		cmocka_unit_test(other_versions_are_refused),
		cmocka_unit_test(losses_stand_in_every_header),
		cmocka_unit_test(a_full_disk_leaves_whole_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
