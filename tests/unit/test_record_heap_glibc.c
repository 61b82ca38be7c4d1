/* test_record_heap_glibc.c - glibc's heap as versions lay it out, in memory that is made up
 *
 * Offsets are those that debug information tells: of Debian's 2.36 and 2.43.  `make check-glibc`
 * compares with real ones.
 */
#include <stdio.h>

#include "format/trace.h"
#include "record/heap/glibc.h"
#include "tests/unit/heap_world.h"

#define DATA	   0x100000u /* of the C library */
#define DATA_BYTES 0x4000u
#define ARENA	   (DATA + 0x1c80)
#define MALLOC_PAR (DATA + 0x300) /* mp_.mmapped_mem */
#define HEAP	   0x200000u
#define HEAP_BYTES 0x21000u
#define MAPPED	   0x300000u
#define END	   0x400000u

#define KEY	0x1122334455667788u
#define NR_USED 23

/* What differs by version. */
struct layout {
	int minor;
	uint64_t to_bins, next; /* of the arena */
	uint64_t cache, entries,
		large; /* of a thread's cache: size, lists, and that of large blocks */
	uint64_t mapped_less;
};

static const struct layout layouts[] = {
	{36, 112, 2160, 648, 128, 0, 0},
	{43, 24, 2072, 760, 152, 152 + 64 * 8, 16},
};

/* The heap, up to @at. */
struct maker {
	struct heap_world *w;
	const struct layout *l;
	uint64_t at;
};

/* Returns the block of a chunk that is in use, of @usable bytes. */
static uint64_t make_chunk(struct maker *k, uint64_t usable)
{
	uint64_t chunk = k->at;

	write_word(k->w, chunk + 8, (usable + 8) | 1);
	k->at += usable + 8;
	return chunk + 16;
}

/* The blocks at @a and @b are in a thread's list, which begins at @list. */
static void put_into_cache(const struct maker *k, uint64_t list, uint64_t a, uint64_t b)
{
	write_word(k->w, list, a);
	write_word(k->w, a, b ^ a >> 12);
	write_word(k->w, a + 8, KEY);
	write_word(k->w, b, b >> 12);
	write_word(k->w, b + 8, KEY);
}

static void make_arena(const struct maker *k)
{
	const uint64_t bins = ARENA + k->l->to_bins;

	for (uint64_t i = 0; i < 127; i++) {
		write_word(k->w, bins + 16 * i, bins + 16 * i - 16);
		write_word(k->w, bins + 16 * i + 8, bins + 16 * i - 16);
	}
	write_word(k->w, bins - 16, k->at); /* top */
	write_word(k->w, k->at + 8, (HEAP + HEAP_BYTES - k->at) | 1);
	write_word(k->w, ARENA + k->l->next, ARENA);
	write_word(k->w, ARENA + k->l->next + 24, HEAP_BYTES); /* system_mem */
	write_word(k->w, MALLOC_PAR, 0x2000);
	write_word(k->w, MALLOC_PAR + 8, 0x3000);
	write_word(k->w, MALLOC_PAR + 16, HEAP);
	write_word(k->w, MALLOC_PAR + 24, 64);
}

/* Returns how many blocks are in threads' caches. */
static size_t make_heap(struct heap_world *w, const struct layout *l)
{
	struct maker k = {w, l, HEAP};
	uint64_t cache = make_chunk(&k, l->cache), a, b;
	char version[64];

	snprintf(version, sizeof(version), "GNU C Library stable release version 2.%d.", l->minor);
	write_bytes(w, DATA, version, sizeof(version));
	for (int i = 0; i < NR_USED; i++)
		make_chunk(&k, 56);
	a = make_chunk(&k, 72);
	b = make_chunk(&k, 72);
	put_into_cache(&k, cache + l->entries + 8ul * 3, a, b);
	if (l->large) { /* of different sizes */
		a = make_chunk(&k, 2008);
		b = make_chunk(&k, 2040);
		put_into_cache(&k, cache + l->large, a, b);
	} else { /* a fast list */
		a = make_chunk(&k, 40);
		write_word(w, ARENA + 16 + 8, a - 16);
		write_word(w, a, a >> 12);
	}
	make_arena(&k);
	/* a block with a mapping of its own */
	write_word(w, MAPPED + 8, (0x2000 - l->mapped_less) | 2);
	return l->large ? 4 : 2;
}

static void begin(struct heap_world *w)
{
	*w = (struct heap_world){0};
	world_begin(w, END);
	world_range(w, DATA, DATA_BYTES);
	world_range(w, HEAP, HEAP_BYTES);
	w->ranges[1].path = "[heap]";
	world_range(w, MAPPED, 0x2000);
	for (size_t i = 0; i < w->memory.nr; i++)
		w->ranges[i].perms = MLK_PERM_R | MLK_PERM_W;
}

static uint64_t size_at(const struct heap_world *w, uint64_t address)
{
	const struct heap_block *block = heap_list_find((struct heap_list *)&w->list, address);

	assert_non_null(block);
	assert_int_equal(block->state, MLK_HEAP_USED);
	return block->size;
}

static void check(const struct layout *l, int minor)
{
	struct heap_world w;
	struct glibc g = {0};
	size_t cached;

	begin(&w);
	cached = make_heap(&w, l);
	assert_true(glibc_find_version(&g, &w.memory, DATA, DATA + DATA_BYTES));
	assert_int_equal(g.minor, l->minor);
	assert_true(glibc_knows_version(&g));
	g.minor = minor;
	assert_true(glibc_find_main(&g, &w.memory, DATA, DATA + DATA_BYTES));
	assert_int_equal(g.main_arena, ARENA);
	assert_int_equal(g.sbrk_base, HEAP);
	assert_int_equal(glibc_walk(&g, &w.memory, &w.list), 0);
	assert_int_equal(g.unwalked, 0);
	assert_int_equal(g.nr_arenas, 1);
	assert_int_equal(count(&w, MLK_HEAP_USED), NR_USED + 1);
	assert_int_equal(count(&w, MLK_HEAP_CACHED), cached);
	assert_int_equal(count(&w, MLK_HEAP_FAST), l->large ? 0 : 1);
	assert_int_equal(count(&w, MLK_HEAP_OWN), 1);
	assert_int_equal(count(&w, MLK_HEAP_TOP), 1);
	assert_int_equal(count(&w, MLK_HEAP_CHANGED), 0);
	/* as malloc_usable_size() says */
	assert_int_equal(size_at(&w, HEAP + l->cache + 8 + 16), 56);
	assert_int_equal(size_at(&w, MAPPED + 16), 0x2000 - 16 - l->mapped_less / 2);
	glibc_release(&g);
	world_end(&w);
}

static void blocks_are_found_in_each_layout(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
		check(&layouts[i], layouts[i].minor);
		check(&layouts[i], GLIBC_UNKNOWN);
	}
}

static void versions_that_are_not_known_are_told(void **state)
{
	(void)state;
	for (int minor = 30; minor <= 60; minor++) {
		const struct glibc g = {.minor = minor};

		assert_int_equal(glibc_knows_version(&g), minor >= 31 && minor <= 44);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_found_in_each_layout),
		cmocka_unit_test(versions_that_are_not_known_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
