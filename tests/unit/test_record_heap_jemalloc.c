/* test_record_heap_jemalloc.c - jemalloc's structures in memory that is made up, and destroyed */
#include "record/heap/jemalloc.h"
#include "tests/unit/heap_world.h"

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

struct world {
	struct heap_world w;
	struct jemalloc j;
};

/* Extent @i of @pages pages at @address; its element is in each page, or in the first and last. */
static void write_extent(const struct heap_world *w, unsigned int i, uint64_t address,
			 uint64_t pages, uint64_t szind, uint64_t state, uint64_t nr_free)
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
static void write_cache(const struct heap_world *w)
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

static void write_world(const struct heap_world *w)
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

static struct world *begin_world(void)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	world_begin(&world->w, END);
	world_range(&world->w, DATA, DATA_BYTES);
	world_range(&world->w, BASE, BASE_BYTES);
	world_range(&world->w, HEAP, HEAP_BYTES);
	world_range(&world->w, THREAD, 0x2000);
	return world;
}

static void end_world(struct world *world)
{
	jemalloc_release(&world->j);
	world_end(&world->w);
	free(world);
}

static int find(struct world *world)
{
	jemalloc_release(&world->j);
	heap_memory_forget(&world->w.memory);
	return jemalloc_find(&world->j, &world->w.memory, DATA, DATA + DATA_BYTES);
}

static int walk(struct world *world)
{
	return jemalloc_walk(&world->j, &world->w.memory, &world->w.list);
}

static bool is_own(const struct world *world, uint64_t address)
{
	return is_in(world->j.own, world->j.nr_own, address);
}

static void each_block_has_its_state(void **state)
{
	struct world *world = begin_world();
	struct heap_world *w = &world->w;
	struct heap_list looked = {0};

	(void)state;
	write_world(w);
	assert_int_equal(find(world), 1);
	assert_int_equal(world->j.root, ROOT);
	assert_int_equal(walk(world), 0);
	assert_int_equal(world->j.unwalked, 0);
	assert_false(world->j.strange);
	assert_int_equal(count(w, MLK_HEAP_FREE), 33 + 1);
	assert_int_equal(count(w, MLK_HEAP_CACHED), 2);
	assert_int_equal(count(w, MLK_HEAP_USED), 256 - 33 - 2 + 1);
	assert_int_equal(count(w, MLK_HEAP_OWN), 2);
	assert_int_equal(heap_list_find(&w->list, SLAB + 11 * 48)->state, MLK_HEAP_CACHED);
	assert_int_equal(heap_list_find(&w->list, SLAB + 12 * 48)->state, MLK_HEAP_USED);
	assert_int_equal(heap_list_find(&w->list, SLAB + 32 * 48)->state, MLK_HEAP_FREE);
	assert_int_equal(heap_list_find(&w->list, LARGE + 0x140)->size, 16384);
	assert_true(is_own(world, EDATA));
	assert_true(is_own(world, STACK + 16));
	assert_true(is_own(world, DIRTY + 4096) && !is_own(world, DIRTY));
	/* region 1 is free meanwhile, and the large block */
	write_word(w, EDATA + 64, ~UINT64_C(0) << 32 | 2);
	write_word(w, EDATA, 1 << 12 | 1 << 13 | 3 << 20 | UINT64_C(34) << 28);
	write_word(w, EDATA + 128, 1 << 13 | 1 << 17 | 36 << 20);
	assert_int_equal(jemalloc_look_at_free(&world->j, &w->memory, &looked), 0);
	heap_list_sort(&looked);
	assert_int_equal(looked.nr, 4);
	assert_non_null(heap_list_find(&looked, SLAB + 48));
	assert_non_null(heap_list_find(&looked, SLAB + 10 * 48));
	assert_non_null(heap_list_find(&looked, LARGE + 0x140));
	heap_list_release(&looked);
	end_world(world);
}

static void a_slab_that_does_not_add_up_is_counted(void **state)
{
	struct world *world = begin_world();
	struct heap_world *w = &world->w;

	(void)state;
	write_world(w);
	assert_int_equal(find(world), 1);
	write_word(w, EDATA, 1 << 12 | 1 << 13 | 3 << 20 | UINT64_C(34) << 28);
	assert_int_equal(walk(world), 0);
	assert_int_equal(world->j.unwalked, 3 * 4096);
	assert_int_equal(count(w, MLK_HEAP_USED), 1);
	end_world(world);
}

static void a_cache_that_is_not_found_is_told(void **state)
{
	struct world *world = begin_world();
	struct heap_world *w = &world->w;

	(void)state;
	write_world(w);
	write_word(w, SLOW + 40, ARENA + 64);
	assert_int_equal(find(world), 1);
	assert_int_equal(walk(world), 0);
	assert_true(world->j.strange);
	/* what its stacks point to is not judged */
	assert_int_equal(count(w, MLK_HEAP_CHANGED), 3);
	end_world(world);
}

static void another_layout_is_refused(void **state)
{
	struct world *world = begin_world();
	struct heap_world *w = &world->w;

	(void)state;
	assert_int_equal(find(world), 0);
	write_world(w);
	/* the root is elsewhere, or the pages are others' */
	write_word(w, ROOT + (HEAP >> 30) * 8, 0);
	write_word(w, DATA + 64, LEAF);
	assert_int_equal(find(world), 0);
	write_world(w);
	for (unsigned int i = 0; i < 4; i++)
		write_word(w, EDATA + 128 * i + 8, HEAP + 0x80000);
	assert_int_equal(find(world), 0);
	end_world(world);
}

/* The caches of threads point to leaves, too, each beside the address that it is for. */
static void a_cached_leaf_is_no_root(void **state)
{
	struct world *world = begin_world();
	struct heap_world *w = &world->w;

	(void)state;
	write_world(w);
	write_word(w, DATA + 0x200, HEAP);
	write_word(w, DATA + 0x208, LEAF);
	assert_int_equal(find(world), 1);
	assert_int_equal(world->j.root, ROOT);
	end_world(world);
}

/* An address where something is, near the beginning of a range, or anything. */
static uint64_t bad_word(struct heap_world *w)
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

/* What is looked at. */
static const struct world_part parts[] = {
	{ROOT, 128},	  {LEAF + (HEAP / 4096) % (1u << 18) * 8, 40 * 8},
	{EDATA, 4 * 128}, {BASE, 160},
	{SLOW, 64},	  {BINS - 8, 112},
	{STACK, 280},	  {ARENA + ARENA_LIST, 8}};

#define NR_PARTS (sizeof(parts) / sizeof(*parts))

static int find_it(struct heap_world *w)
{
	return find((struct world *)w);
}

static int walk_it(struct heap_world *w)
{
	return walk((struct world *)w);
}

static int look_at_it(struct heap_world *w, struct heap_list *list)
{
	return jemalloc_look_at_free(&((struct world *)w)->j, &w->memory, list);
}

static const struct mlk_heap_arena *own_of_it(const struct heap_world *w, size_t *nr)
{
	*nr = ((const struct world *)w)->j.nr_own;
	return ((const struct world *)w)->j.own;
}

static const struct world_allocator allocator = {
	write_world, find_it, walk_it, look_at_it, own_of_it, bad_word, parts, NR_PARTS,
};

static void destroyed_memory_is_walked_to_an_end(void **state)
{
	struct world *world = begin_world();

	(void)state;
	check_destroyed(&world->w, &allocator);
	end_world(world);
}

static void random_memory_is_refused(void **state)
{
	struct world *world = begin_world();

	(void)state;
	fill_badly(&world->w, bad_word);
	assert_int_equal(find(world), 0);
	end_world(world);
}

static void an_early_end_is_told(void **state)
{
	struct world *world = begin_world();

	(void)state;
	check_early_end(&world->w, &allocator);
	end_world(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_block_has_its_state),
		cmocka_unit_test(a_slab_that_does_not_add_up_is_counted),
		cmocka_unit_test(a_cache_that_is_not_found_is_told),
		cmocka_unit_test(another_layout_is_refused),
		cmocka_unit_test(a_cached_leaf_is_no_root),
		cmocka_unit_test(destroyed_memory_is_walked_to_an_end),
		cmocka_unit_test(random_memory_is_refused),
		cmocka_unit_test(an_early_end_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
