/* test_format_damage.c - a trace that was hit: the chunks that were not are read as they were, and
 * of those that were, nothing */
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
#include "format/writer.h"

#define NR_FLIPS  20000
#define NR_RANGES 2000
#define MAX_RANGE 4096

#define NR_EVENTS 240
#define A_CHUNK	  8 /* events */
#define MAX_ITEMS 512
#define STACK_LEN 256

/* A trace in memory, and what the reader makes of it when it is whole. */
struct trace {
	uint8_t *bytes;
	size_t len;
	size_t start[64]; /* offsets of the chunks, and the end of the last */
	int nr_chunks;
	struct item {
		int chunk;
		uint64_t content; /* a hash of all that the record says */
	} items[MAX_ITEMS];
	int nr_items;
};

static struct trace whole;

static uint64_t rnd(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void write_events(struct mlk_writer *w)
{
	uint8_t stack[STACK_LEN] = {0};
	uint64_t random = 4711;

	for (int i = 0; i < NR_EVENTS; i++) {
		struct mlk_event ev = {.kind = i % 5 == 4 ? MLK_FREE : MLK_ALLOC,
				       .tgid = 7,
				       .tid = 7 + (uint32_t)i % 3,
				       .time_ns = 1000 + (uint64_t)i * 10,
				       .addr = rnd(&random),
				       .size = rnd(&random) % 1000,
				       .alloc_id = (uint64_t)i,
				       .func = MLK_FUNC_MALLOC,
				       .nr_regs = 17,
				       .stack = stack,
				       .stack_len = STACK_LEN};
		uint64_t word = rnd(&random);

		if (ev.kind == MLK_FREE)
			ev.size = ev.alloc_id = ev.func = ev.nr_regs = 0;
		memcpy(stack + rnd(&random) % (STACK_LEN / 8) * 8, &word, sizeof(word));
		ev.regs[0] = word;
		ev.regs[MLK_SP_REG] = 0x7ffd00000000 + (uint64_t)ev.tid * 65536;
		assert_int_equal(mlk_writer_event(w, &ev), 0);
		if (i % A_CHUNK == A_CHUNK - 1)
			assert_int_equal(mlk_writer_flush(w), 0);
	}
}

/* One chunk of each other type, too. */
static void write_trace(int fd)
{
	static const struct mlk_meta meta = {.command = "server -x", .comm = "server", .tgid = 7};
	static const struct mlk_mapping code = {.start = 0x1000,
						.end = 0x9000,
						.perms = MLK_PERM_X,
						.id = {.len = 2, .bytes = {1, 0xab}},
						.path = "/lib/x.so"};
	static const struct mlk_maps maps = {.tgid = 7, .time_ns = 42, .nr = 1, .mappings = &code};
	static const struct mlk_thread threads[] = {{7, 7, "main"}, {7, 8, "worker"}};
	static const struct mlk_losses losses = {.count = {[MLK_LOST_RETURN] = 7}};
	uint8_t image[5000];
	uint64_t random = 99;
	struct mlk_writer *w;

	for (size_t i = 0; i < sizeof(image); i++)
		image[i] = (uint8_t)rnd(&random);
	assert_int_equal(mlk_writer_open(&w, fd, &meta, 1), 0);
	assert_int_equal(mlk_writer_maps(w, &maps), 0);
	write_events(w);
	assert_int_equal(mlk_writer_module(w, &code.id, "/lib/x.so", image, sizeof(image)), 0);
	assert_int_equal(mlk_writer_threads(w, threads, 2), 0);
	mlk_writer_set_losses(w, &losses);
	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 77), 0);
	mlk_writer_free(w);
}

static uint64_t hash(uint64_t h, const void *bytes, size_t len)
{
	/* 64 bits of two checksums: a wrong record does not pass by chance. */
	return (h * 31) ^ mlk_crc32(bytes, len) ^ ((uint64_t)mlk_crc32(&h, sizeof(h)) << 32);
}

static uint64_t hash_maps(const struct mlk_maps *maps)
{
	uint64_t h = hash(maps->tgid, &maps->time_ns, sizeof(maps->time_ns));

	for (size_t i = 0; i < maps->nr; i++) {
		const struct mlk_mapping *m = &maps->mappings[i];

		h = hash(h, m, offsetof(struct mlk_mapping, perms));
		h = hash(h, &m->id, sizeof(m->id));
		h = hash(h, m->path, strlen(m->path));
	}
	return h;
}

static uint64_t hash_record(const struct mlk_record *rec)
{
	struct mlk_event ev;

	switch (rec->type) {
	case MLK_RECORD_EVENT:
		ev = rec->event;
		ev.stack = NULL;
		return hash(hash(1, &ev, sizeof(ev)), rec->event.stack, rec->event.stack_len);
	case MLK_RECORD_MAPS:
		return hash_maps(&rec->maps);
	case MLK_RECORD_MODULE:
		return hash(hash(rec->module.offset, rec->module.path, strlen(rec->module.path)),
			    rec->module.piece, rec->module.piece_len);
	default:
		return hash(rec->thread.tid, rec->thread.name, strlen(rec->thread.name));
	}
}

static int chunk_at(const struct trace *t, uint64_t offset)
{
	int i = 0;

	while (i < t->nr_chunks && t->start[i] != offset)
		i++;
	return i;
}

static void read_whole(struct trace *t)
{
	struct mlk_reader *r;
	struct mlk_record rec;

	for (size_t at = MLK_FILE_HEADER; at < t->len;
	     at += MLK_CHUNK_HEADER + mlk_get_u32(t->bytes + at + 24)) {
		assert_true(t->nr_chunks < 63);
		t->start[t->nr_chunks++] = at;
	}
	t->start[t->nr_chunks] = t->len;
	assert_int_equal(mlk_reader_open_mem(&r, t->bytes, t->len), 0);
	while (mlk_reader_next(r, &rec) == 1) {
		assert_true(t->nr_items < MAX_ITEMS);
		t->items[t->nr_items++] =
			(struct item){chunk_at(t, mlk_reader_offset(r)), hash_record(&rec)};
	}
	mlk_reader_free(r);
}

static int make_whole(void **state)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	(void)state;
	write_trace(fd);
	whole.len = (size_t)lseek(fd, 0, SEEK_END);
	whole.bytes = malloc(whole.len);
	assert_int_equal(pread(fd, whole.bytes, whole.len, 0), whole.len);
	close(fd);
	read_whole(&whole);
	assert_int_equal(whole.nr_items, NR_EVENTS + 1 + 1 + 2);
	assert_int_equal(whole.nr_chunks, NR_EVENTS / A_CHUNK + 1 + 1 + 1 + 1 + 1 + 1 + 1);
	assert_true(whole.len > 4 * MAX_RANGE);
	return 0;
}

static int free_whole(void **state)
{
	(void)state;
	free(whole.bytes);
	return 0;
}

/* Chunks of @bytes that are not as in the whole trace. */
static uint64_t chunks_hit(const uint8_t *bytes, int *nr)
{
	uint64_t hit = 0;

	*nr = 0;
	for (int i = 0; i < whole.nr_chunks; i++)
		if (memcmp(bytes + whole.start[i], whole.bytes + whole.start[i],
			   whole.start[i + 1] - whole.start[i])) {
			hit |= 1ull << i;
			++*nr;
		}
	return hit;
}

/* Read @bytes, of the whole trace's length: what comes is exactly what stands in chunks that were
 * not hit.  Returns how many of them were. */
static int check(const uint8_t *bytes)
{
	int nr_hit, at = 0, got;
	uint64_t hit = chunks_hit(bytes, &nr_hit);
	const struct mlk_condition *c;
	struct mlk_reader *r;
	struct mlk_record rec;

	assert_int_equal(mlk_reader_open_mem(&r, bytes, whole.len), 0);
	assert_string_equal(mlk_reader_meta(r)->command, hit & 1 ? "" : "server -x");
	while ((got = mlk_reader_next(r, &rec)) == 1) {
		while (at < whole.nr_items && hit >> whole.items[at].chunk & 1)
			at++;
		assert_true(at < whole.nr_items);
		assert_true(hash_record(&rec) == whole.items[at++].content);
	}
	assert_int_equal(got, 0);
	while (at < whole.nr_items && hit >> whole.items[at].chunk & 1)
		at++;
	assert_int_equal(at, whole.nr_items);
	c = mlk_reader_condition(r);
	assert_int_equal(c->chunks, whole.nr_chunks - nr_hit);
	assert_true(c->chunks_lost <= (uint64_t)nr_hit);
	/* Behind the last chunk there is no number that could be missing. */
	assert_true(!nr_hit || c->chunks_lost || c->bytes_skipped);
	assert_int_equal(c->ended, !(hit >> (whole.nr_chunks - 1) & 1));
	mlk_reader_free(r);
	return nr_hit;
}

static void the_whole_trace_is_whole(void **state)
{
	(void)state;
	assert_int_equal(check(whole.bytes), 0);
}

static void a_flipped_bit_costs_one_chunk(void **state)
{
	uint8_t *bytes = malloc(whole.len);
	uint64_t random = 12345;

	(void)state;
	memcpy(bytes, whole.bytes, whole.len);
	for (int i = 0; i < NR_FLIPS; i++) {
		size_t bit =
			MLK_FILE_HEADER * 8 + rnd(&random) % ((whole.len - MLK_FILE_HEADER) * 8);

		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(check(bytes), 1);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	free(bytes);
}

static void a_flipped_bit_of_the_file_header_is_seen(void **state)
{
	struct mlk_reader *r;

	(void)state;
	for (size_t bit = 0; bit < MLK_FILE_HEADER * 8; bit++) {
		int want = bit < MLK_MAGIC_LEN * 8 ? MLK_E_MAGIC : MLK_E_HEADER;

		whole.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(mlk_reader_open_mem(&r, whole.bytes, whole.len), want);
		assert_null(r);
		whole.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void garbage_costs_the_chunks_it_lies_on(void **state)
{
	uint8_t *bytes = malloc(whole.len);
	uint64_t random = 54321;
	int most = 0;

	(void)state;
	for (int i = 0; i < NR_RANGES; i++) {
		size_t len = 1 + rnd(&random) % MAX_RANGE;
		size_t at = MLK_FILE_HEADER + rnd(&random) % (whole.len - MLK_FILE_HEADER - len);
		int hit;

		memcpy(bytes, whole.bytes, whole.len);
		for (size_t b = at; b < at + len; b++)
			bytes[b] = i % 2 ? (uint8_t)rnd(&random) : 0;
		hit = check(bytes);
		most = hit > most ? hit : most;
	}
	assert_true(most > 2);
	free(bytes);
}

static void what_is_put_between_chunks_costs_none(void **state)
{
	uint64_t random = 777;

	(void)state;
	for (int i = 0; i < 200; i++) {
		size_t at = whole.start[rnd(&random) % (uint64_t)(whole.nr_chunks + 1)];
		size_t more = 1 + rnd(&random) % MAX_RANGE;
		uint8_t *bytes = malloc(whole.len + more);
		struct mlk_reader *r;
		struct mlk_record rec;
		int nr = 0;

		memcpy(bytes, whole.bytes, at);
		for (size_t b = 0; b < more; b++)
			/* Among it, beginnings of chunk magics. */
			bytes[at + b] = i % 2 ? (uint8_t)rnd(&random) : mlk_chunk_magic[b % 7];
		memcpy(bytes + at + more, whole.bytes + at, whole.len - at);
		assert_int_equal(mlk_reader_open_mem(&r, bytes, whole.len + more), 0);
		while (mlk_reader_next(r, &rec) == 1)
			assert_true(hash_record(&rec) == whole.items[nr++].content);
		assert_int_equal(nr, whole.nr_items);
		assert_int_equal(mlk_reader_condition(r)->bytes_skipped, more);
		assert_int_equal(mlk_reader_condition(r)->chunks_lost, 0);
		mlk_reader_free(r);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_whole_trace_is_whole),
		cmocka_unit_test(a_flipped_bit_costs_one_chunk),
		cmocka_unit_test(a_flipped_bit_of_the_file_header_is_seen),
		cmocka_unit_test(garbage_costs_the_chunks_it_lies_on),
		cmocka_unit_test(what_is_put_between_chunks_costs_none),
	};

	return cmocka_run_group_tests(tests, make_whole, free_whole);
}
