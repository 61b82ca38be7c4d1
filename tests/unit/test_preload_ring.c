/* test_preload_ring.c - rings as a preloaded library fills them */
#include "tests/unit/preload_ring_world.h"

static void events_of_all_rings_come_in_the_order_of_their_times(void **state)
{
	struct world *w = *state;

	w->memory->processes[1].program = 1;
	for (uint64_t t = 1; t <= 40; t++)
		put_free(w, (uint32_t)(t * 7 / 5 % RINGS), t, t * 16);
	assert_int_equal(shared_rings_look(w->rings, 1000, 10), 990);
	assert_int_equal(shared_rings_consume(w->rings, 31), 0);
	assert_int_equal(w->nr, 30);
	assert_int_equal(shared_rings_consume(w->rings, UINT64_MAX), 0);
	assert_int_equal(w->nr, 40);
	for (unsigned int i = 0; i < 40; i++)
		assert_int_equal(w->seen[i].addr, (i + 1) * 16);
	for (uint32_t i = 0; i < RINGS; i++)
		assert_int_equal(w->memory->rings[i].tail, w->memory->rings[i].head);
}

static void a_ring_that_is_being_written_holds_later_events_back(void **state)
{
	struct world *w = *state;

	w->memory->processes[1].program = 1;
	put_free(w, 0, 10, 16);
	put_free(w, 1, 30, 32);
	w->memory->rings[0].busy = 10; /* its next event has a time of 10 or more */
	assert_int_equal(shared_rings_look(w->rings, 1000, 10), 10);
	w->memory->rings[0].busy = 0;
	assert_int_equal(shared_rings_look(w->rings, 1000, 10), 990);
}

static void events_are_of_the_process_whose_slot_the_ring_names(void **state)
{
	struct world *w = *state;

	for (uint32_t i = 0; i < 3; i++)
		put_free(w, i, 10 + i, 16);
	w->memory->rings[1].owner = (uint64_t)(5u << PRELOAD_SLOT_BITS | 2) << 32 | 55;
	w->memory->rings[2].owner = (uint64_t)(PRELOAD_MAX_PROCESSES - 1) << 32 | 56;
	shared_rings_look(w->rings, 1000, 10);
	assert_int_equal(shared_rings_consume(w->rings, UINT64_MAX), 0);
	assert_int_equal(w->nr, 2); /* of nobody's ring nothing is taken */
	assert_int_equal(w->seen[0].id, 7001ull << 32 | 100);
	assert_int_equal(w->seen[1].id, 7002ull << 32 | 55);
}

static void who_has_ended_while_writing_holds_nothing_back(void **state)
{
	struct world *w = *state;

	put_free(w, 0, 10, 16);
	w->memory->rings[0].owner = 3ull << 32 | 77;
	w->memory->processes[3].program = 3;
	w->memory->rings[0].busy = 10;
	assert_int_equal(shared_rings_look(w->rings, 1000, 10), 990);
}

static void of_two_events_at_one_time_the_free_comes_first(void **state)
{
	const struct given slice = {0, ALL};
	struct world *w = *state;

	put_alloc(w, 20, 64, &slice, 1, 5);
	put_free(w, 1, 20, 20);
	shared_rings_look(w->rings, 1000, 10);
	assert_int_equal(shared_rings_consume(w->rings, UINT64_MAX), 0);
	assert_int_equal(w->seen[0].type, EVENT_FREE);
	assert_int_equal(w->seen[1].type, EVENT_ALLOC);
}

static void a_stack_is_put_together_from_what_changed(void **state)
{
	const struct given whole[] = {{0, ALL}, {1, ALL}, {2, ALL}};
	const struct given word = {1, 3 << 6};
	struct world *w = *state;
	uint64_t value;

	put_alloc(w, 1, 300, whole, 3, 0x1111);
	put_alloc(w, 2, 300, &word, 1, 0x2222);
	shared_rings_look(w->rings, 1000, 10);
	assert_int_equal(shared_rings_consume(w->rings, UINT64_MAX), 0);
	assert_int_equal(w->nr, 2);
	assert_int_equal(bad(w), 0);
	assert_int_equal(w->seen[0].kept_from, 0);
	assert_int_equal(w->seen[1].kept_from, SP - 16 + 2 * PRELOAD_SLICE);
	for (uint32_t at = 0; at + 8 <= 300; at += 8) {
		memcpy(&value, w->seen[1].stack + at, 8);
		assert_int_equal(value, at == 128 - 16 + 24 ? 0x2222 : 0x1111);
	}
}

static void rings_of_two_sizes_stand_one_behind_the_other(void **state)
{
	const struct preload_sizes two = {.nr_rings = 40, .ring_size = 4096, .large_size = 16384};

	(void)state;
	for (uint32_t i = 0; i < two.nr_rings; i++) {
		assert_int_equal(preload_ring_size(&two, i), i < 16 ? 16384 : 4096);
		assert_int_equal(preload_ring_offset(&two, i + 1),
				 preload_ring_offset(&two, i) + preload_ring_size(&two, i));
	}
	assert_true(preload_ring_offset(&two, 0) >=
		    sizeof(struct preload_header) + 40 * sizeof(struct preload_ring));
}

static void times_stack_pointers_and_registers_are_told_by_what_changed(void **state)
{
	const struct given whole[] = {{0, ALL}, {1, ALL}, {2, ALL}};
	struct preload_alloc first = {.regs = 0x3f, .stack_len = 200};
	struct preload_alloc second = {
		.record = {.after = 7}, .regs = 2, .sp_after = -8, .stack_len = 208};
	struct world *w = *state;

	put_base(w, 0, 1ull << 40, SP);
	put_stack(w, &first, whole, 2, 0x1111);
	put_stack(w, &second, whole, 0, 0x2222);
	put_free_after(w, 0, UINT32_MAX, 16);
	shared_rings_look(w->rings, 2ull << 40, 10);
	assert_int_equal(shared_rings_consume(w->rings, UINT64_MAX), 0);
	assert_int_equal(bad(w), 0);
	assert_int_equal(w->nr, 3);
	assert_int_equal(w->seen[0].regs[EVENT_R15], 0x1111);
	assert_int_equal(w->seen[0].regs[EVENT_RSP], SP);
	assert_int_equal(w->seen[1].time_ns, (1ull << 40) + 7);
	assert_int_equal(w->seen[1].regs[EVENT_RSP], SP - 8);
	assert_int_equal(w->seen[1].regs[EVENT_RBP], 0x2222);
	assert_int_equal(w->seen[1].regs[EVENT_R15], 0x1111);
	assert_int_equal(w->seen[2].time_ns, (1ull << 40) + 7 + UINT32_MAX);
}

static bool always(uint32_t tgid, uint32_t tid)
{
	(void)tgid;
	(void)tid;
	return true;
}

static void the_ring_of_an_ended_thread_is_free_when_it_is_empty(void **state)
{
	struct world *w = *state;

	put_free(w, 2, 5, 16);
	shared_rings_look(w->rings, 1000, 10);
	shared_rings_give_back(w->rings, always);
	assert_int_not_equal(w->memory->rings[2].owner, 0);
	shared_rings_consume(w->rings, UINT64_MAX);
	put_free(w, 2, 6, 16);
	shared_rings_give_back(w->rings, always);
	assert_int_not_equal(w->memory->rings[2].owner, 0);
	shared_rings_look(w->rings, 1000, 10);
	shared_rings_consume(w->rings, UINT64_MAX);
	shared_rings_give_back(w->rings, always);
	assert_int_equal(w->memory->rings[2].owner, 0);
	assert_int_equal(w->nr, 2);
}

static void a_thread_is_named_before_its_first_event_and_once(void **state)
{
	struct world *w = *state;

	memcpy(w->memory->rings[2].name, "worker", 7);
	for (int i = 0; i < 2; i++) {
		put_free(w, 2, 5, 16);
		shared_rings_look(w->rings, 1000, 10);
		shared_rings_consume(w->rings, UINT64_MAX);
	}
	assert_string_equal(w->names, "7001/102 worker;");
	/* another one in that ring; the bytes have no end */
	shared_rings_give_back(w->rings, always);
	memcpy(w->memory->rings[2].name, "0123456789abcdef", 16);
	memset(w->memory->rings[2].unused_target, 'x', sizeof(w->memory->rings[2].unused_target));
	put_free(w, 2, 7, 16);
	shared_rings_look(w->rings, 1000, 10);
	shared_rings_consume(w->rings, UINT64_MAX);
	assert_string_equal(w->names, "7001/102 worker;7001/102 0123456789abcdef;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(events_of_all_rings_come_in_the_order_of_their_times),
		IN_WORLD(a_ring_that_is_being_written_holds_later_events_back),
		IN_WORLD(events_are_of_the_process_whose_slot_the_ring_names),
		IN_WORLD(who_has_ended_while_writing_holds_nothing_back),
		IN_WORLD(of_two_events_at_one_time_the_free_comes_first),
		IN_WORLD(a_stack_is_put_together_from_what_changed),
		IN_WORLD(rings_of_two_sizes_stand_one_behind_the_other),
		IN_WORLD(times_stack_pointers_and_registers_are_told_by_what_changed),
		IN_WORLD(the_ring_of_an_ended_thread_is_free_when_it_is_empty),
		IN_WORLD(a_thread_is_named_before_its_first_event_and_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
