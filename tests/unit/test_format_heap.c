/* test_format_heap.c - HEAP chunks, doc/trace-format.md 4.20 */
#include "format/record/heap.h"
#include "format/writer.h"
#include "tests/unit/format_outcome.h"
#include "tests/unit/format_world.h"

#define NR	  150001 /* blocks: three chunks */
#define MUTATIONS 20000

static struct mlk_heap_block blocks[NR];

static const struct mlk_heap_arena arenas[] = {{0x7f0000000c60, 2200}, {0x7e0000000030, 2200}};

/* Neighbours as glibc has them, gaps, and blocks at both ends of the address space. */
static void make_blocks(void)
{
	uint64_t at = 0;

	for (size_t i = 0; i < NR; i++) {
		blocks[i] = (struct mlk_heap_block){at, i % 5 ? 24 + 16 * (i % 7) : 0,
						    i % 11 ? 0 : UINT64_C(0x7f1234567890) * (i % 3),
						    (uint8_t)(i % 7)};
		at += blocks[i].size + (i % 100 ? 8 : UINT64_C(1) << 30);
	}
	blocks[NR - 1].address = UINT64_MAX - 15;
	blocks[NR - 1].size = 15;
}

static struct mlk_heap sample_heap(size_t nr)
{
	return (struct mlk_heap){.tgid = 7,
				 .snapshot = 3,
				 .allocator = "glibc 2.36",
				 .begin_ns = 1000,
				 .end_ns = 2000,
				 .unwalked = UINT64_MAX,
				 .nr_arenas = 2,
				 .arenas = arenas,
				 .nr = nr,
				 .blocks = blocks};
}

/* The chunks of a walk come back one after the other; only the last has its sums. */
static void check_walk(struct mlk_reader *r, size_t nr)
{
	struct mlk_record rec;
	size_t got = 0;
	bool last = false;

	while (!last) {
		assert_int_equal(mlk_reader_next(r, &rec), 1);
		assert_int_equal(rec.type, MLK_RECORD_HEAP);
		assert_int_equal(rec.heap.tgid, 7);
		assert_int_equal(rec.heap.snapshot, 3);
		assert_string_equal(rec.heap.allocator, "glibc 2.36");
		assert_int_equal(rec.heap.begin_ns, 1000);
		assert_int_equal(rec.heap.end_ns, 2000);
		assert_true(rec.heap.nr <= nr - got);
		for (size_t i = 0; i < rec.heap.nr; i++) {
			assert_int_equal(rec.heap.blocks[i].address, blocks[got + i].address);
			assert_int_equal(rec.heap.blocks[i].size, blocks[got + i].size);
			assert_int_equal(rec.heap.blocks[i].first, blocks[got + i].first);
			assert_int_equal(rec.heap.blocks[i].state, blocks[got + i].state);
		}
		got += rec.heap.nr;
		last = rec.heap.flags == MLK_HEAP_LAST;
		assert_int_equal(last, got == nr);
		assert_int_equal(rec.heap.nr_arenas, last ? 2 : 0);
		assert_int_equal(rec.heap.unwalked, last ? UINT64_MAX : 0);
	}
	assert_memory_equal(rec.heap.arenas, arenas, sizeof(arenas));
}

static void walks_come_back(void **state)
{
	struct mlk_heap heap = sample_heap(NR), none = sample_heap(0);
	struct mlk_record rec;
	struct mlk_reader *r;
	struct trace t;
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_REDACTED);

	(void)state;
	make_blocks();
	assert_int_equal(mlk_writer_heap(w, &heap), 0);
	assert_int_equal(mlk_writer_heap(w, &none), 0);
	assert_int_equal(mlk_writer_finish(w, MLK_END_SIGNAL, 3000), 0);
	mlk_writer_free(w);
	t = slurp(fd);
	assert_int_equal(mlk_reader_open_mem(&r, t.bytes, t.len), 0);
	mlk_reader_rewind(r, MLK_RECORD_HEAP);
	check_walk(r, NR);
	check_walk(r, 0);
	assert_int_equal(mlk_reader_next(r, &rec), 0);
	assert_int_equal(mlk_reader_condition(r)->chunks_lost, 0);
	mlk_reader_free(r);
	free(t.bytes);
}

static void what_is_not_in_order_is_not_written(void **state)
{
	static const struct mlk_heap_block wrong[][2] = {
		{{16, 24, 0, 0}, {32, 8, 0, 0}}, /* they overlap */
		{{32, 8, 0, 0}, {16, 8, 0, 0}},	 /* one lies before */
		{{16, 8, 0, 0}, {25, 8, 0, 0}},	 /* an odd address */
		{{16, 8, 0, 0}, {24, 8, 0, 7}},	 /* a state that there is not */
		{{16, 8, 0, 0}, {24, UINT64_MAX, 0, 0}}};
	struct mlk_heap heap = sample_heap(2);
	int fd;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		heap.blocks = wrong[i];
		assert_int_equal(mlk_writer_heap(w, &heap), -EINVAL);
	}
	assert_int_equal(mlk_writer_finish(w, MLK_END_SIGNAL, 3000), 0);
	mlk_writer_free(w);
	close(fd);
}

/* Decode @payload, which may be anything.  What is decoded keeps to its limits. */
static int decode(const uint8_t *payload, size_t len, struct mlk_heap_room *room, size_t *nr)
{
	struct mlk_dec d = {.at = payload, .end = payload + len};
	struct mlk_arena text = {0};
	struct mlk_heap heap;
	int err = mlk_heap_decode(&d, &text, room, &heap);
	uint64_t end = 0;

	*nr = err ? 0 : heap.nr;
	for (size_t i = 0; i < *nr; i++) {
		assert_true(heap.blocks[i].address >= end && heap.blocks[i].address % 8 == 0);
		assert_true(heap.blocks[i].size <= UINT64_MAX - heap.blocks[i].address);
		end = heap.blocks[i].address + heap.blocks[i].size;
	}
	for (size_t i = 0; !err && i < heap.nr_arenas; i++)
		assert_true(heap.arenas[i].length <= UINT64_MAX - heap.arenas[i].address);
	mlk_arena_release(&text);
	return err;
}

static void what_was_changed_keeps_to_the_limits(void **state)
{
	struct mlk_heap heap = sample_heap(50);
	struct mlk_heap_room room = {0};
	struct mlk_enc e = {0};
	uint32_t seed = 1;
	size_t nr, damaged = 0;

	(void)state;
	make_blocks();
	assert_int_equal(mlk_heap_encode(&e, &heap), 0);
	assert_int_equal(decode(e.buf, e.len, &room, &nr), 0);
	assert_int_equal(nr, 50);
	for (int i = 0; i < MUTATIONS; i++) {
		uint8_t *copy = malloc(e.len);
		size_t len;

		assert_non_null(copy);
		memcpy(copy, e.buf, e.len);
		for (int at = 0; at <= i % 3; at++) {
			seed = seed * 1664525 + 1013904223;
			copy[(seed >> 8) % e.len] = i % 2 ? (uint8_t)(seed >> 24) : 0xff;
		}
		len = i % 5 ? e.len : seed % e.len;
		damaged += decode(copy, len, &room, &nr) != 0;
		free(copy);
	}
	assert_true(damaged > MUTATIONS / 10);
	mlk_heap_room_release(&room);
	mlk_enc_release(&e);
}

#define HEAD "\7\3\1\0\0\0\0\0\0\0\0\0\0\0" /* tgid 7, snapshot 3, complete, no name, no time */
#define CHECK(bytes, blocks, wrong)                                                               \
	do {                                                                                      \
		assert_int_equal(decode((const uint8_t *)(bytes), sizeof(bytes) - 1, &room, &nr), \
				 (wrong) ? MLK_E_CORRUPT : 0);                                    \
		assert_int_equal(nr, blocks);                                                     \
	} while (0)

static void wrong_ones_are_damage(void **state)
{
	struct mlk_heap_room room = {0};
	size_t nr;

	(void)state;
	CHECK(HEAD "\0\0\4\0\0\0\0", 0, false);
	CHECK(HEAD "\0\1\4\1\1\1\1\x10\x18\0\2", 1, false);
	CHECK(HEAD "\0\1\5\1\1\1\1\1\x10\x18\0\2\0", 1, false); /* a later version */
	CHECK(HEAD "\0\1\4\1\1\1\1\x10\x18\x63\2", 1, false);	/* so is its state */
	CHECK(HEAD "\0\1\3\1\1\1\x10\x18\0\2", 0, true);	/* a column is missing */
	CHECK(HEAD "\0\2\4\1\1\1\1\x10\x18\0\2", 0, true);	/* a block is missing */
	CHECK(HEAD "\0\1\4\1\1\1\1\x11\x18\0\2", 0, true);	/* an odd address */
	CHECK(HEAD "\2\1\1\0\4\0\0\0\0", 0, true);		/* an arena is missing */
	CHECK(HEAD "\0\x81\x80\4\4\0\0\0\0", 0, true);		/* 65,537 blocks */
	mlk_heap_room_release(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_come_back),
		cmocka_unit_test(what_is_not_in_order_is_not_written),
		cmocka_unit_test(what_was_changed_keeps_to_the_limits),
		cmocka_unit_test(wrong_ones_are_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
