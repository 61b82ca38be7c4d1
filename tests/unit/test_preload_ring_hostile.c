/* test_preload_ring_hostile.c - rings as a hostile program fills them */
#include "tests/unit/preload_ring_world.h"

static void an_event_that_lies_of_its_slices_is_counted_and_the_next_comes(void **state)
{
	const struct given whole[] = {{0, ALL}, {1, ALL}, {2, ALL}};
	const struct given twice[] = {{0, 1}, {0, 1}}, far = {9, 1}, part = {3, 1};
	struct world *w = *state;

	put_alloc(w, 1, 300, whole, 2, 1);   /* the third was never given */
	put_alloc(w, 2, 300, whole, 3, 1);   /* right */
	put_alloc(w, 3, 300, twice, 2, 1);   /* not ascending */
	put_alloc(w, 4, 300, &far, 1, 1);    /* beyond the stack */
	put_alloc(w, 5, 400, &part, 1, 1);   /* a new slice, not whole */
	put_alloc(w, 6, 70000, whole, 3, 1); /* more than an event may have */
	put_alloc(w, 7, 0, whole, 1, 1);     /* no stack at all */
	put_alloc(w, 8, 300, whole, 0, 1);   /* right: nothing has changed */
	shared_rings_look(w->rings, 1000, 10);
	assert_int_equal(shared_rings_consume(w->rings, UINT64_MAX), 0);
	assert_int_equal(w->nr, 2);
	assert_int_equal(w->seen[0].time_ns, 2);
	assert_int_equal(w->seen[1].time_ns, 8);
	assert_int_equal(bad(w), 6);
}

static void a_length_that_lies_costs_that_ring_alone(void **state)
{
	static const uint16_t lens[] = {0, 11, RING_SIZE / 8 + 1, UINT16_MAX};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		uint8_t *first = place(w, 0);

		w->nr = 0;
		put_free(w, 0, 5, 16);
		memcpy(first, &lens[i], 2);
		put_free(w, 0, 6, 16);
		put_free(w, 1, 7, 32);
		shared_rings_look(w->rings, 1000, 10);
		assert_int_equal(shared_rings_consume(w->rings, UINT64_MAX), 0);
		assert_int_equal(w->nr, 1);
		assert_int_equal(w->seen[0].addr, 32);
		assert_int_equal(bad(w), i + 1);
		put_free(w, 0, 8, 48);
		shared_rings_look(w->rings, 1000, 10);
		assert_int_equal(shared_rings_consume(w->rings, UINT64_MAX), 0);
		assert_int_equal(w->nr, 2);
	}
}

static void a_position_that_lies_is_survived(void **state)
{
	static const uint64_t heads[] = {7, UINT64_MAX, RING_SIZE + 8, 1ull << 63, 0, 16};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		put_free(w, 0, 5, 16);
		shared_rings_look(w->rings, 1000, 10);
		w->memory->rings[0].head = heads[i];
		shared_rings_look(w->rings, 1000, 10);
		shared_rings_consume(w->rings, UINT64_MAX);
	}
	put_free(w, 1, 7, 32);
	w->nr = 0;
	shared_rings_look(w->rings, 1000, 10);
	assert_int_equal(shared_rings_consume(w->rings, UINT64_MAX), 0);
	assert_int_equal(w->seen[(w->nr - 1) % 64].addr, 32);
}

static void any_bytes_are_survived(void **state)
{
	struct world *w = *state;
	uint8_t *bytes = (uint8_t *)w->memory;
	size_t nr = preload_ring_offset(&sizes, RINGS);
	uint32_t seed = 1;

	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < nr; i++) {
			seed = seed * 1103515245 + 12345;
			/* Many small numbers, so that some lengths are right. */
			bytes[i] = seed >> 30 ? 0 : (uint8_t)(seed >> 16 & 0x3f);
		}
		for (uint32_t i = 0; i < RINGS; i++) {
			w->memory->rings[i].owner = 1 + i;
			w->memory->rings[i].head = w->memory->rings[i].tail + (seed & 0xfff8);
		}
		shared_rings_look(w->rings, UINT64_MAX / 2, 10);
		assert_int_equal(shared_rings_consume(w->rings, UINT64_MAX), 0);
	}
}

static void an_event_that_counts_from_nothing_is_none(void **state)
{
	struct world *w = *state;

	put_free_after(w, 0, 5, 16);
	put_free(w, 0, 6, 32);
	shared_rings_look(w->rings, 1000, 10);
	assert_int_equal(shared_rings_consume(w->rings, UINT64_MAX), 0);
	assert_int_equal(w->nr, 1);
	assert_int_equal(w->seen[0].addr, 32);
	assert_int_equal(bad(w), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(an_event_that_lies_of_its_slices_is_counted_and_the_next_comes),
		IN_WORLD(a_length_that_lies_costs_that_ring_alone),
		IN_WORLD(a_position_that_lies_is_survived),
		IN_WORLD(any_bytes_are_survived),
		IN_WORLD(an_event_that_counts_from_nothing_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
