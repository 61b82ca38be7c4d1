/* test_record_heap_tcmalloc_damage.c - tcmalloc's structures destroyed */
#include "tests/unit/tcmalloc_world.h"

/* An address where something is, near the beginning of a range, or anything. */
static uint64_t bad_word(struct heap_world *w)
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

/* What is looked at. */
static const struct world_part parts[] = {{ROOT + 16, 64},
					  {LEAF + (HEAP / 8192) % (1u << 18) * 8, 128 * 8},
					  {SPANS, 48 * NR_SPANS},
					  {CENTRAL + 1216 * CLASS_48, 1216},
					  {CACHES, 4160 * 3},
					  {SLAB, 8192},
					  {POOL, 32},
					  {HEADS, 24}};

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
	return tcmalloc_look_at_free(&((struct world *)w)->t, &w->memory, list);
}

static const struct mlk_heap_arena *own_of_it(const struct heap_world *w, size_t *nr)
{
	*nr = ((const struct world *)w)->t.nr_own;
	return ((const struct world *)w)->t.own;
}

static const struct world_allocator allocator = {
	write_world, find_it, walk_it, look_at_it, own_of_it, bad_word, parts, NR_PARTS,
};

static void an_early_end_is_told(void **state)
{
	struct world *world = begin_world();

	(void)state;
	check_early_end(&world->w, &allocator);
	end_world(world);
}

static void random_memory_is_refused(void **state)
{
	struct world *world = begin_world();

	(void)state;
	fill_badly(&world->w, bad_word);
	assert_int_equal(find(world), 0);
	write_sizes(&world->w);
	assert_int_equal(find(world), 0);
	end_world(world);
}

static void destroyed_memory_is_walked_to_an_end(void **state)
{
	struct world *world = begin_world();

	(void)state;
	check_destroyed(&world->w, &allocator);
	end_world(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(destroyed_memory_is_walked_to_an_end),
		cmocka_unit_test(random_memory_is_refused),
		cmocka_unit_test(an_early_end_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
