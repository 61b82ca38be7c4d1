/* test_record_heap_tcmalloc.c - tcmalloc's structures in memory that is made up */
#include "tests/unit/tcmalloc_world.h"

static uint8_t state_of(const struct heap_world *w, uint64_t address)
{
	const struct heap_block *block = heap_list_find(&w->list, address);

	assert_non_null(block);
	return block->state;
}

static bool is_own(const struct world *world, uint64_t address)
{
	return is_in(world->t.own, world->t.nr_own, address);
}

static void each_block_has_its_state(void **state)
{
	struct world *world = begin_world();
	struct heap_world *w = &world->w;

	(void)state;
	write_world(w);
	assert_int_equal(find(world), 1);
	assert_int_equal(world->t.root, ROOT);
	assert_int_equal(world->t.central, CENTRAL);
	assert_int_equal(walk(world), 0);
	assert_int_equal(world->t.unwalked, 0);
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
	end_world(world);
}

static void words_of_its_own_hold_nothing(void **state)
{
	struct world *world = begin_world();
	struct heap_world *w = &world->w;

	(void)state;
	write_world(w);
	assert_int_equal(find(world), 1);
	assert_int_equal(walk(world), 0);
	assert_true(is_own(world, GONE + 32) && is_own(world, SPANS));
	assert_false(is_own(world, SPANS + 48 * NR_SPANS));
	assert_true(is_own(world, LEAF) && is_own(world, LEAF + (2 << 20) - 8));
	assert_true(is_own(world, CACHES + 4160 + 32 * CLASS_48));
	assert_true(is_own(world, CENTRAL + 1216 * CLASS_48 + 144));
	/* behind the last object of a slab */
	assert_true(is_own(world, SLAB + 8192 - 8) && !is_own(world, SLAB + 169 * 48));
	end_world(world);
}

static void what_is_freed_meanwhile_is_met(void **state)
{
	struct world *world = begin_world();
	struct heap_world *w = &world->w;
	struct heap_list looked = {0};

	(void)state;
	write_world(w);
	assert_int_equal(find(world), 1);
	assert_int_equal(walk(world), 0);
	/* an object goes to the slab, one to a cache; the large block is free */
	write_word(w, SPANS + 32, SLAB + 3 * 48);
	write_word(w, SPANS + 40, bits_of(OBJECTS - 3, CLASS_48, 0));
	write_word(w, SLAB + 3 * 48, SLAB + 2 * 48);
	write_word(w, CACHES + 32 * CLASS_48, SLAB + 20 * 48);
	write_word(w, CACHES + 32 * CLASS_48 + 8, 1);
	write_word(w, SLAB + 20 * 48, 0);
	write_word(w, SPANS + 96 + 40, bits_of(0, 0, 1));
	assert_int_equal(tcmalloc_look_at_free(&world->t, &w->memory, &looked), 0);
	heap_list_sort(&looked);
	assert_non_null(heap_list_find(&looked, SLAB + 3 * 48));
	assert_non_null(heap_list_find(&looked, SLAB + 20 * 48));
	assert_non_null(heap_list_find(&looked, SLAB + 10 * 48));
	assert_non_null(heap_list_find(&looked, LARGE));
	assert_null(heap_list_find(&looked, SLAB + 21 * 48));
	assert_int_equal(looked.nr, 3 + 3 + 2 + 1 + 1);
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
	write_word(w, SPANS + 40, bits_of(OBJECTS - 1, CLASS_48, 0));
	assert_int_equal(walk(world), 0);
	assert_int_equal(world->t.unwalked, 8192);
	assert_int_equal(count(w, MLK_HEAP_USED), 1 + 8 + 2);
	end_world(world);
}

static void a_list_that_is_longer_than_it_says_frees_nothing(void **state)
{
	struct world *world = begin_world();
	struct heap_world *w = &world->w;

	(void)state;
	write_world(w);
	assert_int_equal(find(world), 1);
	/* a thread took object 10 and made it point to 50, which is in use, and that to 51 and 52
	 */
	write_word(w, SLAB + 10 * 48, SLAB + 50 * 48);
	write_word(w, SLAB + 50 * 48, SLAB + 51 * 48);
	write_word(w, SLAB + 51 * 48, SLAB + 52 * 48);
	assert_int_equal(walk(world), 0);
	assert_int_equal(count(w, MLK_HEAP_CACHED), 3);
	assert_int_equal(state_of(w, SLAB + 10 * 48), MLK_HEAP_CHANGED);
	assert_int_equal(state_of(w, SLAB + 50 * 48), MLK_HEAP_CHANGED);
	/* whatever may be in the rest of it is not judged: its first word ends a list */
	assert_int_equal(state_of(w, SLAB + 11 * 48), MLK_HEAP_CHANGED);
	assert_int_equal(state_of(w, SLAB + 60 * 48), MLK_HEAP_CHANGED);
	assert_int_equal(state_of(w, OTHER), MLK_HEAP_USED);
	end_world(world);
}

static void caches_that_are_not_found_leave_nothing_to_judge(void **state)
{
	struct world *world = begin_world();
	struct heap_world *w = &world->w;

	(void)state;
	write_world(w);
	assert_int_equal(find(world), 1);
	write_word(w, CACHES + 4160 + 4152, CACHES + 64);
	assert_int_equal(walk(world), 0);
	assert_int_equal(state_of(w, SLAB + 11 * 48), MLK_HEAP_CHANGED);
	assert_int_equal(state_of(w, SLAB + 10 * 48), MLK_HEAP_CHANGED);
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
	write_word(w, ROOT + (HEAP >> 31) * 8, 0);
	write_word(w, DATA + 8, LEAF);
	assert_int_equal(find(world), 0);
	write_world(w);
	for (unsigned int i = 1; i < NR_SPANS; i++)
		write_word(w, SPANS + UINT64_C(48) * i, (HEAP + 0x80000) / 8192);
	assert_int_equal(find(world), 0);
	write_world(w);
	write_word(w, CENTRAL + 1216 * 5 + 8, 6);
	assert_int_equal(find(world), 0);
	write_world(w);
	write_word(w, SIZES + 516 + 8 * CLASS_4096, 0);
	assert_int_equal(find(world), 0);
	write_world(w);
	write_word(w, HEADS, 0);
	write_word(w, HEADS + 16, 0);
	assert_int_equal(find(world), 0);
	write_world(w);
	assert_int_equal(find(world), 1);
	end_world(world);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
