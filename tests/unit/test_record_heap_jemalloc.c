/* test_record_heap_jemalloc.c - jemalloc's structures in memory that is made up, and destroyed */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/heap/jemalloc.h"

/* Where things are; the file's offsets are addresses. */
#define DATA	   UINT64_C(0x10000000)
#define DATA_BYTES UINT64_C(0x400000)
#define ROOT	   (DATA + 0x1b18)
#define ARENA_WORD (DATA + 0x10)
#define BASE	   UINT64_C(0x200000000)
#define BASE_BYTES UINT64_C(0x800000)
#define LEAF	   (BASE + 0xc0)
#define EDATA	   (BASE + 0x300000)
#define ARENA	   (BASE + 0x400040)
#define ARENA_LIST 0x2468
#define HEAP	   UINT64_C(0x240000000)
#define HEAP_BYTES UINT64_C(0x100000)
#define THREAD	   UINT64_C(0x300000000)
#define SLOW	   (THREAD + 0x108)
#define BINS	   (THREAD + 0x408)
#define END	   UINT64_C(0x400000000)

#define SLAB	    HEAP			 /* 256 regions of 48 bytes, class 3 */
#define LARGE	    (HEAP + HEAP_BYTES - 0x5000) /* 16384 bytes, class 36, and a page */
#define STACK	    (HEAP + 0x10000)		 /* the same: the stacks of a cache */
#define DIRTY	    (HEAP + 0x18000)		 /* 4 pages that are free */
#define NR_BINS	    4
#define BIN_SLOTS   8
#define STACK_WORDS (NR_BINS * BIN_SLOTS + 2)

#define PRESENT (UINT64_C(1) << 63)
#define ROUNDS	400

/* Memory of a process that there is not. */
struct world {
	struct heap_memory memory;
	struct mlk_range ranges[4];
	struct jemalloc j;
	struct heap_list list;
	uint64_t seed;
};

static void write_bytes(const struct world *w, uint64_t address, const void *bytes, size_t len)
{
	const uint64_t present = PRESENT;

	assert_int_equal(pwrite(w->memory.mem, bytes, len, (off_t)address), (ssize_t)len);
	for (uint64_t page = address / 4096; page <= (address + len - 1) / 4096; page++)
		assert_int_equal(pwrite(w->memory.pagemap, &present, 8, (off_t)(page * 8)), 8);
}

static void write_word(const struct world *w, uint64_t address, uint64_t word)
{
	write_bytes(w, address, &word, sizeof(word));
}

/* Extent @i of @pages pages at @address; its element is in each page, or in the first and last. */
static void write_extent(const struct world *w, unsigned int i, uint64_t address, uint64_t pages,
			 uint64_t szind, uint64_t state, uint64_t nr_free)
{
	const uint64_t edata = EDATA + UINT64_C(128) * i, slab = szind < 36 && !state;

	write_word(w, edata, slab << 12 | 1 << 13 | state << 17 | szind << 20 | nr_free << 28);
	write_word(w, edata + 8, address);
	write_word(w, edata + 16, pages * 4096 | 5);
	for (uint64_t page = 0; page < pages; page++)
		if (slab || !page || page == pages - 1)
			write_word(w, LEAF + (address / 4096 + page) % (1u << 18) * 8,
				   szind << 48 | edata | state << 2 | slab);
}

/* The cache of a thread: bin 3 has the regions 10 and 11 of the slab, and had region 12. */
static void write_cache(const struct world *w)
{
	uint64_t end = STACK + 8;

	write_word(w, STACK, JEMALLOC_MARK_BEFORE);
	write_word(w, SLOW, SLOW);
	write_word(w, SLOW + 8, SLOW);
	write_word(w, SLOW + 32, BINS);
	write_word(w, SLOW + 40, ARENA);
	write_word(w, BINS - 8, SLOW);
	for (unsigned int i = 0; i < NR_BINS; i++) {
		const uint64_t bin = BINS + UINT64_C(24) * i, low = end;

		end += UINT64_C(8) * BIN_SLOTS;
		write_word(w, bin, i == 3 ? end - 16 : end);
		write_word(w, bin + 8, 77);
		write_word(w, bin + 16,
			   (end & 0xffff) | (low & 0xffff) << 16 | (end & 0xffff) << 32);
	}
	write_word(w, end - 24, SLAB + 12 * 48);
	write_word(w, end - 16, SLAB + 11 * 48);
	write_word(w, end - 8, SLAB + 10 * 48);
	write_word(w, end, UINT64_C(0xa7a7a7a7a7a7a7a7));
}

static void write_world(const struct world *w)
{
	static const uint64_t bits[8] = {~UINT64_C(0) << 32, 0, 0, 1, 0x55, 0, 0, 0x77};

	write_word(w, DATA + DATA_BYTES - 8, 1);
	write_word(w, ROOT + (HEAP >> 30) * 8, LEAF);
	write_word(w, ARENA_WORD, ARENA);
	write_word(w, BASE, BASE_BYTES);
	write_word(w, BASE + 8, 0);
	write_word(w, BASE + 16, 0xfff | 1 << 13 | 232 << 20);
	write_word(w, BASE + 24, BASE + 0x500000);
	write_word(w, BASE + 32, BASE_BYTES - 0x500000);
	write_word(w, ARENA + ARENA_LIST, SLOW);
	/* 32 regions and one are free; what is behind the bits of 256 is of no meaning */
	write_extent(w, 0, SLAB, 3, 3, 0, 33);
	write_bytes(w, EDATA + 64, bits, sizeof(bits));
	write_extent(w, 1, LARGE, 5, 36, 0, 0);
	write_word(w, EDATA + 128 + 8, LARGE + 0x140);
	write_extent(w, 2, STACK, 5, 36, 0, 0);
	write_extent(w, 3, DIRTY, 4, 232, 1, 0);
	write_word(w, DIRTY + 4096, JEMALLOC_MARK_BEFORE);
	write_bytes(w, HEAP + HEAP_BYTES - 8, bits, 8);
	write_cache(w);
}

static int make_file(void)
{
	int fd = memfd_create("world", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)END), 0);
	return fd;
}

static struct world *begin_world(void)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->seed = 1;
	w->memory.mem = make_file();
	w->memory.pagemap = make_file();
	w->memory.ranges = w->ranges;
	w->memory.nr = 4;
	w->ranges[0] = (struct mlk_range){.start = DATA, .end = DATA + DATA_BYTES, .path = ""};
	w->ranges[1] = (struct mlk_range){.start = BASE, .end = BASE + BASE_BYTES, .path = ""};
	w->ranges[2] = (struct mlk_range){.start = HEAP, .end = HEAP + HEAP_BYTES, .path = ""};
	w->ranges[3] = (struct mlk_range){.start = THREAD, .end = THREAD + 0x2000, .path = ""};
	return w;
}

static void end_world(struct world *w)
{
	jemalloc_release(&w->j);
	heap_list_release(&w->list);
	close(w->memory.mem);
	close(w->memory.pagemap);
	free(w);
}

static int find(struct world *w)
{
	jemalloc_release(&w->j);
	heap_memory_forget(&w->memory);
	return jemalloc_find(&w->j, &w->memory, DATA, DATA + DATA_BYTES);
}

static size_t count(const struct world *w, int state)
{
	size_t nr = 0;

	for (size_t i = 0; i < w->list.nr; i++)
		nr += w->list.v[i].state == state;
	return nr;
}

static bool is_own(const struct world *w, uint64_t address)
{
	for (size_t i = 0; i < w->j.nr_own; i++)
		if (address - w->j.own[i].address < w->j.own[i].length)
			return true;
	return false;
}

static void each_block_has_its_state(void **state)
{
	struct world *w = begin_world();
	struct heap_list looked = {0};

	(void)state;
	write_world(w);
	assert_int_equal(find(w), 1);
	assert_int_equal(w->j.root, ROOT);
	assert_int_equal(jemalloc_walk(&w->j, &w->memory, &w->list), 0);
	assert_int_equal(w->j.unwalked, 0);
	assert_false(w->j.strange);
	assert_int_equal(count(w, MLK_HEAP_FREE), 33 + 1);
	assert_int_equal(count(w, MLK_HEAP_CACHED), 2);
	assert_int_equal(count(w, MLK_HEAP_USED), 256 - 33 - 2 + 1);
	assert_int_equal(count(w, MLK_HEAP_OWN), 2);
	assert_int_equal(heap_list_find(&w->list, SLAB + 11 * 48)->state, MLK_HEAP_CACHED);
	assert_int_equal(heap_list_find(&w->list, SLAB + 12 * 48)->state, MLK_HEAP_USED);
	assert_int_equal(heap_list_find(&w->list, SLAB + 32 * 48)->state, MLK_HEAP_FREE);
	assert_int_equal(heap_list_find(&w->list, LARGE + 0x140)->size, 16384);
	assert_true(is_own(w, EDATA));
	assert_true(is_own(w, STACK + 16));
	assert_true(is_own(w, DIRTY + 4096) && !is_own(w, DIRTY));
	/* region 1 is free meanwhile, and the large block */
	write_word(w, EDATA + 64, ~UINT64_C(0) << 32 | 2);
	write_word(w, EDATA, 1 << 12 | 1 << 13 | 3 << 20 | UINT64_C(34) << 28);
	write_word(w, EDATA + 128, 1 << 13 | 1 << 17 | 36 << 20);
	assert_int_equal(jemalloc_look_at_free(&w->j, &w->memory, &looked), 0);
	heap_list_sort(&looked);
	assert_int_equal(looked.nr, 4);
	assert_non_null(heap_list_find(&looked, SLAB + 48));
	assert_non_null(heap_list_find(&looked, SLAB + 10 * 48));
	assert_non_null(heap_list_find(&looked, LARGE + 0x140));
	heap_list_release(&looked);
	end_world(w);
}

static void a_slab_that_does_not_add_up_is_counted(void **state)
{
	struct world *w = begin_world();

	(void)state;
	write_world(w);
	assert_int_equal(find(w), 1);
	write_word(w, EDATA, 1 << 12 | 1 << 13 | 3 << 20 | UINT64_C(34) << 28);
	assert_int_equal(jemalloc_walk(&w->j, &w->memory, &w->list), 0);
	assert_int_equal(w->j.unwalked, 3 * 4096);
	assert_int_equal(count(w, MLK_HEAP_USED), 1);
	end_world(w);
}

static void a_cache_that_is_not_found_is_told(void **state)
{
	struct world *w = begin_world();

	(void)state;
	write_world(w);
	write_word(w, SLOW + 40, ARENA + 64);
	assert_int_equal(find(w), 1);
	assert_int_equal(jemalloc_walk(&w->j, &w->memory, &w->list), 0);
	assert_true(w->j.strange);
	/* what its stacks point to is not judged */
	assert_int_equal(count(w, MLK_HEAP_CHANGED), 3);
	end_world(w);
}

static void another_layout_is_refused(void **state)
{
	struct world *w = begin_world();

	(void)state;
	assert_int_equal(find(w), 0);
	write_world(w);
	/* the root is elsewhere, or the pages are others' */
	write_word(w, ROOT + (HEAP >> 30) * 8, 0);
	write_word(w, DATA + 64, LEAF);
	assert_int_equal(find(w), 0);
	write_world(w);
	for (unsigned int i = 0; i < 4; i++)
		write_word(w, EDATA + 128 * i + 8, HEAP + 0x80000);
	assert_int_equal(find(w), 0);
	end_world(w);
}

static uint64_t next_random(struct world *w)
{
	w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
	return w->seed >> 16;
}

/* An address where something is, near the beginning of a range, or anything. */
static uint64_t bad_word(struct world *w)
{
	static const uint64_t places[] = {ROOT + 72, LEAF,  EDATA, ARENA, SLAB,
					  LARGE,     STACK, SLOW,  BINS};
	const uint64_t random = next_random(w);

	switch (random % 6) {
	case 0:
		return random & 0xfff;
	case 1:
		return w->ranges[random / 8 % 4].start + (random >> 8 & 0xfffff8);
	case 2:
		return UINT64_MAX - (random & 0xff);
	case 3:
		return places[random / 8 % (sizeof(places) / sizeof(*places))];
	case 4:
		return (random & 0xff) << 48 | (EDATA + (random >> 8 & 7) * 128) |
		       (random >> 16 & 0x1f);
	default:
		return random << 20 | (random & 7);
	}
}

static void check_list(const struct world *w)
{
	uint64_t end = 0;

	for (size_t i = 0; i < w->list.nr; i++) {
		assert_true(w->list.v[i].address >= end);
		assert_true(w->list.v[i].address % 8 == 0);
		assert_true(w->list.v[i].size <= INT64_MAX - w->list.v[i].address);
		end = w->list.v[i].address + w->list.v[i].size;
	}
	for (size_t i = 0; i < w->j.nr_own; i++)
		assert_true(w->j.own[i].length <= INT64_MAX - w->j.own[i].address);
}

/* What is looked at. */
static const struct part {
	uint64_t at, len;
} parts[] = {{ROOT, 128},      {LEAF + (HEAP / 4096) % (1u << 18) * 8, 40 * 8},
	     {EDATA, 4 * 128}, {BASE, 160},
	     {SLOW, 64},       {BINS - 8, 112},
	     {STACK, 280},     {ARENA + ARENA_LIST, 8}};

#define NR_PARTS (sizeof(parts) / sizeof(*parts))

/* Make all as it was. */
static void repair(struct world *w)
{
	static const uint8_t zeros[1024];

	for (size_t i = 0; i < NR_PARTS; i++)
		write_bytes(w, parts[i].at, zeros, parts[i].len);
	write_world(w);
}

static void destroy(struct world *w, unsigned int words)
{
	while (words--) {
		const struct part *part = &parts[next_random(w) % NR_PARTS];

		write_word(w, part->at + (next_random(w) % part->len & ~UINT64_C(7)), bad_word(w));
	}
}

static void destroyed_memory_is_walked_to_an_end(void **state)
{
	struct world *w = begin_world();
	struct heap_list looked = {0};

	(void)state;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		repair(w);
		assert_int_equal(find(w), 1);
		destroy(w, 1 + i % 50);
		assert_int_equal(jemalloc_walk(&w->j, &w->memory, &w->list), 0);
		check_list(w);
		destroy(w, 1 + i % 50);
		looked.nr = 0;
		assert_int_equal(jemalloc_look_at_free(&w->j, &w->memory, &looked), 0);
		if (find(w) > 0)
			assert_int_equal(jemalloc_walk(&w->j, &w->memory, &w->list), 0);
	}
	heap_list_release(&looked);
	end_world(w);
}

static void random_memory_is_refused(void **state)
{
	struct world *w = begin_world();
	uint64_t words[512];

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		for (uint64_t at = w->ranges[i].start; at < w->ranges[i].end; at += sizeof(words)) {
			/* half of the words are zero */
			for (size_t k = 0; k < 512; k++)
				words[k] = next_random(w) % 2 ? bad_word(w) : 0;
			write_bytes(w, at, words, sizeof(words));
		}
	assert_int_equal(find(w), 0);
	end_world(w);
}

static void an_early_end_is_told(void **state)
{
	static const _Atomic bool stop = true;
	struct world *w = begin_world();

	(void)state;
	write_world(w);
	assert_int_equal(find(w), 1);
	w->memory.stop = &stop;
	assert_int_equal(jemalloc_walk(&w->j, &w->memory, &w->list), -ECANCELED);
	assert_int_equal(find(w), 0);
	end_world(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_block_has_its_state),
		cmocka_unit_test(a_slab_that_does_not_add_up_is_counted),
		cmocka_unit_test(a_cache_that_is_not_found_is_told),
		cmocka_unit_test(another_layout_is_refused),
		cmocka_unit_test(destroyed_memory_is_walked_to_an_end),
		cmocka_unit_test(random_memory_is_refused),
		cmocka_unit_test(an_early_end_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
