/* test_record_heap_tcmalloc.c - tcmalloc's structures in memory that is made up, and destroyed */
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

#include "record/heap/tcmalloc.h"

/* Where things are; the file's offsets are addresses. */
#define DATA	   UINT64_C(0x10000000)
#define DATA_BYTES UINT64_C(0x200000)
#define ROOT	   (DATA + 0x20f08)
#define CENTRAL	   (DATA + 0x160f20)
#define SIZES	   (DATA + 0x190f9c) /* class_to_size_ */
#define POOL	   (DATA + 0x1a0fe8) /* of Spans; its words are in two pages */
#define HEADS	   (DATA + 0x1a1100)
#define META	   UINT64_C(0x200000000)
#define META_BYTES UINT64_C(0x800000)
#define SPANS	   META /* of 128 KiB at first */
#define CACHES	   (META + 0x20000)
#define LEAF	   (META + 0x40000)
#define HEAP	   UINT64_C(0x240000000)
#define HEAP_BYTES UINT64_C(0x100000)
#define END	   UINT64_C(0x300000000)

/* Spans: their numbers and where they are. */
#define SLAB	   HEAP		    /* 170 objects of 48 bytes, and 32 */
#define FREE	   (HEAP + 0x2000)  /* 3 pages */
#define LARGE	   (HEAP + 0x8000)  /* 5 pages */
#define OTHER	   (HEAP + 0x12000) /* 8 objects of 1024 bytes */
#define FULL	   (HEAP + 0x14000) /* 2 of 4096 */
#define REST	   (HEAP + 0x16000) /* up to the end, given back */
#define GONE	   (SPANS + 48 * 6) /* a Span that is no more */
#define NR_SPANS   7
#define OBJECTS	   170
#define CLASS_48   3
#define CLASS_1024 5
#define CLASS_4096 6
#define NR_CLASSES 13

#define PRESENT (UINT64_C(1) << 63)
#define ROUNDS	400

static const uint32_t sizes[NR_CLASSES] = {0,	 8,	16,    48,    256,    1024,  4096,
					   8192, 16384, 32768, 65536, 131072, 262144};

/* Memory of a process that there is not. */
struct world {
	struct heap_memory memory;
	struct mlk_range ranges[3];
	struct tcmalloc t;
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

static uint64_t bits_of(uint64_t refcount, uint64_t sizeclass, uint64_t location)
{
	return refcount | sizeclass << 16 | location << 24;
}

/* Span @i; a slab has its element in each page, others in the first and the last. */
static void write_span(const struct world *w, unsigned int i, uint64_t address, uint64_t pages,
		       uint64_t objects, uint64_t bits)
{
	const uint64_t span = SPANS + UINT64_C(48) * i, first = address / 8192;

	write_word(w, span, first);
	write_word(w, span + 8, pages);
	write_word(w, span + 16, 0);
	write_word(w, span + 24, 0);
	write_word(w, span + 32, objects);
	write_word(w, span + 40, bits);
	write_word(w, LEAF + first % (1u << 18) * 8, span);
	write_word(w, LEAF + (first + pages - 1) % (1u << 18) * 8, span);
}

static void write_sizes(const struct world *w)
{
	for (unsigned int i = 1; i < NR_CLASSES; i++) {
		const uint32_t moved = i == CLASS_48 ? 3 : 32;

		write_bytes(w, SIZES + 4 * i, &sizes[i], 4);
		write_bytes(w, SIZES - 512 + 4 * i, &moved, 4);
		write_word(w, SIZES + 516 + 8 * i, sizes[i] < 8192 ? 1 : sizes[i] / 8192);
	}
}

/* Class 3 has a chain of the objects 30 to 32 in a slot, and had one more. */
static void write_central(const struct world *w)
{
	for (unsigned int i = 0; i < NR_CLASSES; i++) {
		const uint64_t at = CENTRAL + UINT64_C(1216) * i;

		write_word(w, at + 8, i);
		for (uint64_t list = at + 16; list <= at + 64; list += 48) {
			write_word(w, list + 16, list);
			write_word(w, list + 24, list);
		}
		write_word(w, at + 1152, i == CLASS_48);
	}
	write_word(w, CENTRAL + 1216 * CLASS_48 + 64 + 16, SPANS);
	write_word(w, CENTRAL + 1216 * CLASS_48 + 128, SLAB + 30 * 48);
	write_word(w, CENTRAL + 1216 * CLASS_48 + 136, SLAB + 32 * 48);
	write_word(w, CENTRAL + 1216 * CLASS_48 + 144, SLAB + 40 * 48);
	write_word(w, SLAB + 30 * 48, SLAB + 31 * 48);
	write_word(w, SLAB + 31 * 48, SLAB + 32 * 48);
	write_word(w, SLAB + 32 * 48, 0);
}

/* Two caches of threads; the second one has the objects 10 and 11. */
static void write_caches(const struct world *w)
{
	for (unsigned int i = 0; i < 2; i++) {
		const uint64_t cache = CACHES + UINT64_C(4160) * i;

		for (unsigned int k = 0; k < NR_CLASSES; k++)
			write_word(w, cache + 32 * k + 24, sizes[k]);
		write_word(w, cache + 4144, i ? 0 : CACHES + 4160);
		write_word(w, cache + 4152, i ? CACHES : 0);
	}
	write_word(w, CACHES + 4160 + 32 * CLASS_48, SLAB + 10 * 48);
	write_word(w, CACHES + 4160 + 32 * CLASS_48 + 8, 2);
	write_word(w, SLAB + 10 * 48, SLAB + 11 * 48);
	write_word(w, SLAB + 11 * 48, 0);
	write_word(w, HEADS, CACHES);
	write_word(w, HEADS + 16, CACHES + 4160);
}

static void write_world(const struct world *w)
{
	write_word(w, DATA + DATA_BYTES - 8, 1);
	write_word(w, ROOT + (HEAP >> 31) * 8, LEAF);
	write_sizes(w);
	write_central(w);
	write_caches(w);
	write_span(w, 0, SLAB, 1, SLAB + 2 * 48, bits_of(OBJECTS - 2, CLASS_48, 0));
	write_word(w, SLAB + 2 * 48, SLAB + 7 * 48);
	write_word(w, SLAB + 7 * 48, 0);
	write_word(w, SLAB + 8192 - 8, HEAP);
	write_span(w, 1, FREE, 3, 0, bits_of(0, 7, 1));
	write_span(w, 2, LARGE, 5, 0, 0);
	write_word(w, LARGE, 77);
	write_span(w, 3, OTHER, 1, 0, bits_of(8, CLASS_1024, 0));
	write_word(w, OTHER, 1);
	write_span(w, 4, FULL, 1, 0, bits_of(2, CLASS_4096, 0));
	write_word(w, FULL, 1);
	write_span(w, 5, REST, (HEAP + HEAP_BYTES - REST) / 8192, 0, bits_of(0, 0, 2));
	/* pages inside of what is free still lead to what they were */
	write_word(w, LEAF + (FREE / 8192 + 1) % (1u << 18) * 8, GONE);
	write_word(w, GONE, 0);
	write_word(w, GONE + 32, SLAB + 50 * 48);
	write_word(w, POOL, SPANS + 48 * NR_SPANS);
	write_word(w, POOL + 8, (128 << 10) - 48 * NR_SPANS);
	write_word(w, POOL + 16, GONE);
	write_word(w, POOL + 24, NR_SPANS - 1);
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
	w->memory.nr = 3;
	w->ranges[0] = (struct mlk_range){.start = DATA, .end = DATA + DATA_BYTES, .path = ""};
	w->ranges[1] = (struct mlk_range){.start = META, .end = META + META_BYTES, .path = ""};
	w->ranges[2] = (struct mlk_range){.start = HEAP, .end = HEAP + HEAP_BYTES, .path = ""};
	return w;
}

static void end_world(struct world *w)
{
	tcmalloc_release(&w->t);
	heap_list_release(&w->list);
	close(w->memory.mem);
	close(w->memory.pagemap);
	free(w);
}

static int find(struct world *w)
{
	tcmalloc_release(&w->t);
	heap_memory_forget(&w->memory);
	return tcmalloc_find(&w->t, &w->memory, DATA, DATA + DATA_BYTES);
}

static int walk(struct world *w)
{
	return tcmalloc_walk(&w->t, &w->memory, &w->list);
}

static size_t count(const struct world *w, int state)
{
	size_t nr = 0;

	for (size_t i = 0; i < w->list.nr; i++)
		nr += w->list.v[i].state == state;
	return nr;
}

static uint8_t state_of(const struct world *w, uint64_t address)
{
	const struct heap_block *block = heap_list_find(&w->list, address);

	assert_non_null(block);
	return block->state;
}

static bool is_own(const struct world *w, uint64_t address)
{
	for (size_t i = 0; i < w->t.nr_own; i++)
		if (address - w->t.own[i].address < w->t.own[i].length)
			return true;
	return false;
}

static void each_block_has_its_state(void **state)
{
	struct world *w = begin_world();

	(void)state;
	write_world(w);
	assert_int_equal(find(w), 1);
	assert_int_equal(w->t.root, ROOT);
	assert_int_equal(w->t.central, CENTRAL);
	assert_int_equal(walk(w), 0);
	assert_int_equal(w->t.unwalked, 0);
	assert_int_equal(count(w, MLK_HEAP_FREE), 2 + 2);
	assert_int_equal(count(w, MLK_HEAP_CACHED), 2 + 3);
	assert_int_equal(count(w, MLK_HEAP_USED), OBJECTS - 7 + 1 + 8 + 2);
	assert_int_equal(count(w, MLK_HEAP_CHANGED), 0);
	assert_int_equal(state_of(w, SLAB + 7 * 48), MLK_HEAP_FREE);
	assert_int_equal(state_of(w, SLAB + 11 * 48), MLK_HEAP_CACHED);
	assert_int_equal(state_of(w, SLAB + 32 * 48), MLK_HEAP_CACHED);
	assert_int_equal(state_of(w, SLAB + 40 * 48), MLK_HEAP_USED);
	assert_int_equal(heap_list_find(&w->list, LARGE)->size, 5 * 8192);
	assert_int_equal(heap_list_find(&w->list, FREE)->size, 3 * 8192);
	end_world(w);
}

static void words_of_its_own_hold_nothing(void **state)
{
	struct world *w = begin_world();

	(void)state;
	write_world(w);
	assert_int_equal(find(w), 1);
	assert_int_equal(walk(w), 0);
	assert_true(is_own(w, GONE + 32) && is_own(w, SPANS));
	assert_false(is_own(w, SPANS + 48 * NR_SPANS));
	assert_true(is_own(w, LEAF) && is_own(w, LEAF + (2 << 20) - 8));
	assert_true(is_own(w, CACHES + 4160 + 32 * CLASS_48));
	assert_true(is_own(w, CENTRAL + 1216 * CLASS_48 + 144));
	/* behind the last object of a slab */
	assert_true(is_own(w, SLAB + 8192 - 8) && !is_own(w, SLAB + 169 * 48));
	end_world(w);
}

static void what_is_freed_meanwhile_is_met(void **state)
{
	struct world *w = begin_world();
	struct heap_list looked = {0};

	(void)state;
	write_world(w);
	assert_int_equal(find(w), 1);
	assert_int_equal(walk(w), 0);
	/* an object goes to the slab, one to a cache; the large block is free */
	write_word(w, SPANS + 32, SLAB + 3 * 48);
	write_word(w, SPANS + 40, bits_of(OBJECTS - 3, CLASS_48, 0));
	write_word(w, SLAB + 3 * 48, SLAB + 2 * 48);
	write_word(w, CACHES + 32 * CLASS_48, SLAB + 20 * 48);
	write_word(w, CACHES + 32 * CLASS_48 + 8, 1);
	write_word(w, SLAB + 20 * 48, 0);
	write_word(w, SPANS + 96 + 40, bits_of(0, 0, 1));
	assert_int_equal(tcmalloc_look_at_free(&w->t, &w->memory, &looked), 0);
	heap_list_sort(&looked);
	assert_non_null(heap_list_find(&looked, SLAB + 3 * 48));
	assert_non_null(heap_list_find(&looked, SLAB + 20 * 48));
	assert_non_null(heap_list_find(&looked, SLAB + 10 * 48));
	assert_non_null(heap_list_find(&looked, LARGE));
	assert_null(heap_list_find(&looked, SLAB + 21 * 48));
	assert_int_equal(looked.nr, 3 + 3 + 2 + 1 + 1);
	heap_list_release(&looked);
	end_world(w);
}

static void a_slab_that_does_not_add_up_is_counted(void **state)
{
	struct world *w = begin_world();

	(void)state;
	write_world(w);
	assert_int_equal(find(w), 1);
	write_word(w, SPANS + 40, bits_of(OBJECTS - 1, CLASS_48, 0));
	assert_int_equal(walk(w), 0);
	assert_int_equal(w->t.unwalked, 8192);
	assert_int_equal(count(w, MLK_HEAP_USED), 1 + 8 + 2);
	end_world(w);
}

static void a_list_that_is_longer_than_it_says_frees_nothing(void **state)
{
	struct world *w = begin_world();

	(void)state;
	write_world(w);
	assert_int_equal(find(w), 1);
	/* a thread took object 10 and made it point to 50, which is in use, and that to 51 and 52
	 */
	write_word(w, SLAB + 10 * 48, SLAB + 50 * 48);
	write_word(w, SLAB + 50 * 48, SLAB + 51 * 48);
	write_word(w, SLAB + 51 * 48, SLAB + 52 * 48);
	assert_int_equal(walk(w), 0);
	assert_int_equal(count(w, MLK_HEAP_CACHED), 3);
	assert_int_equal(state_of(w, SLAB + 10 * 48), MLK_HEAP_CHANGED);
	assert_int_equal(state_of(w, SLAB + 50 * 48), MLK_HEAP_CHANGED);
	/* whatever may be in the rest of it is not judged: its first word ends a list */
	assert_int_equal(state_of(w, SLAB + 11 * 48), MLK_HEAP_CHANGED);
	assert_int_equal(state_of(w, SLAB + 60 * 48), MLK_HEAP_CHANGED);
	assert_int_equal(state_of(w, OTHER), MLK_HEAP_USED);
	end_world(w);
}

static void caches_that_are_not_found_leave_nothing_to_judge(void **state)
{
	struct world *w = begin_world();

	(void)state;
	write_world(w);
	assert_int_equal(find(w), 1);
	write_word(w, CACHES + 4160 + 4152, CACHES + 64);
	assert_int_equal(walk(w), 0);
	assert_int_equal(state_of(w, SLAB + 11 * 48), MLK_HEAP_CHANGED);
	assert_int_equal(state_of(w, SLAB + 10 * 48), MLK_HEAP_CHANGED);
	end_world(w);
}

static void another_layout_is_refused(void **state)
{
	struct world *w = begin_world();

	(void)state;
	assert_int_equal(find(w), 0);
	write_world(w);
	/* the root is elsewhere, or the pages are others' */
	write_word(w, ROOT + (HEAP >> 31) * 8, 0);
	write_word(w, DATA + 8, LEAF);
	assert_int_equal(find(w), 0);
	write_world(w);
	for (unsigned int i = 1; i < NR_SPANS; i++)
		write_word(w, SPANS + UINT64_C(48) * i, (HEAP + 0x80000) / 8192);
	assert_int_equal(find(w), 0);
	write_world(w);
	write_word(w, CENTRAL + 1216 * 5 + 8, 6);
	assert_int_equal(find(w), 0);
	write_world(w);
	write_word(w, SIZES + 516 + 8 * CLASS_4096, 0);
	assert_int_equal(find(w), 0);
	write_world(w);
	write_word(w, HEADS, 0);
	write_word(w, HEADS + 16, 0);
	assert_int_equal(find(w), 0);
	write_world(w);
	assert_int_equal(find(w), 1);
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
	static const uint64_t places[] = {ROOT + 32, LEAF,  SPANS,   CACHES,
					  SLAB,	     LARGE, CENTRAL, GONE};
	const uint64_t random = next_random(w);

	switch (random % 6) {
	case 0:
		return random & 0xfff;
	case 1:
		return w->ranges[random / 8 % 3].start + (random >> 8 & 0xfffff8);
	case 2:
		return UINT64_MAX - (random & 0xff);
	case 3:
		return places[random / 8 % (sizeof(places) / sizeof(*places))];
	case 4:
		return SLAB + (random >> 8) % OBJECTS * 48;
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
	for (size_t i = 0; i < w->t.nr_own; i++)
		assert_true(w->t.own[i].length <= INT64_MAX - w->t.own[i].address);
}

/* What is looked at. */
static const struct part {
	uint64_t at, len;
} parts[] = {{ROOT + 16, 64},
	     {LEAF + (HEAP / 8192) % (1u << 18) * 8, 128 * 8},
	     {SPANS, 48 * NR_SPANS},
	     {CENTRAL + 1216 * CLASS_48, 1216},
	     {CACHES, 4160 * 2},
	     {SLAB, 8192},
	     {POOL, 32},
	     {HEADS, 24}};

#define NR_PARTS (sizeof(parts) / sizeof(*parts))

/* Make all as it was. */
static void repair(struct world *w)
{
	static const uint8_t zeros[8320];

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
		assert_int_equal(walk(w), 0);
		check_list(w);
		destroy(w, 1 + i % 50);
		looked.nr = 0;
		assert_int_equal(tcmalloc_look_at_free(&w->t, &w->memory, &looked), 0);
		if (find(w) > 0)
			assert_int_equal(walk(w), 0);
	}
	heap_list_release(&looked);
	end_world(w);
}

static void random_memory_is_refused(void **state)
{
	struct world *w = begin_world();
	uint64_t words[512];

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		for (uint64_t at = w->ranges[i].start; at < w->ranges[i].end; at += sizeof(words)) {
			/* half of the words are zero */
			for (size_t k = 0; k < 512; k++)
				words[k] = next_random(w) % 2 ? bad_word(w) : 0;
			write_bytes(w, at, words, sizeof(words));
		}
	assert_int_equal(find(w), 0);
	write_sizes(w);
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
	assert_int_equal(walk(w), -ECANCELED);
	assert_int_equal(find(w), 0);
	end_world(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_block_has_its_state),
		cmocka_unit_test(words_of_its_own_hold_nothing),
		cmocka_unit_test(what_is_freed_meanwhile_is_met),
		cmocka_unit_test(a_slab_that_does_not_add_up_is_counted),
		cmocka_unit_test(a_list_that_is_longer_than_it_says_frees_nothing),
		cmocka_unit_test(caches_that_are_not_found_leave_nothing_to_judge),
		cmocka_unit_test(another_layout_is_refused),
		cmocka_unit_test(destroyed_memory_is_walked_to_an_end),
		cmocka_unit_test(random_memory_is_refused),
		cmocka_unit_test(an_early_end_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
