/* test_preload_ring.c - rings as a preloaded library fills them, and as a hostile program does */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/event.h"
#include "record/shared_ring.h"

#define RINGS	  4u
#define RING_SIZE 65536u
#define SP	  0x7fff00001010ull

struct seen {
	uint32_t type;
	uint64_t id, addr, time_ns;
	uint32_t stack_len;
	uint8_t stack[4096];
};

struct world {
	struct preload_header *memory;
	struct shared_rings *rings;
	struct seen seen[64];
	unsigned int nr;
};

static int on_event(void *ctx, uint64_t time_ns, void *data, size_t size)
{
	struct world *w = ctx;
	const struct event_small *small = data;
	const struct event_alloc *alloc = data;
	struct seen *s = &w->seen[w->nr++ % 64];
	uint32_t below;

	assert_true(size >= sizeof(*small));
	s->type = small->type;
	s->time_ns = time_ns;
	if (small->type != EVENT_ALLOC) {
		s->addr = small->addr;
		s->id = small->id;
		return 0;
	}
	below = alloc->regs[EVENT_RSP] % EVENT_STACK_ALIGN;
	assert_int_equal(size, sizeof(*alloc) + alloc->stack_len);
	assert_int_equal(alloc->time_ns, time_ns);
	s->addr = alloc->addr;
	s->stack_len = alloc->stack_len - below;
	memcpy(s->stack, alloc->stack + below,
	       s->stack_len < sizeof(s->stack) ? s->stack_len : sizeof(s->stack));
	return 0;
}

static uint64_t to_ns(void *ctx, uint64_t time)
{
	(void)ctx;
	return time;
}

/* Process 7000 + slot is in each slot but the last; that of slot 3 has ended. */
static uint32_t process_in(void *ctx, uint32_t slot)
{
	(void)ctx;
	return slot == PRELOAD_MAX_PROCESSES - 1 ? 0 : 7000 + slot;
}

static bool has_ended(void *ctx, uint32_t slot)
{
	(void)ctx;
	return slot == 3;
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	size_t bytes = preload_ring_offset(RINGS, RING_SIZE, RINGS);
	struct shared_rings_opts opts = {.nr_rings = RINGS,
					 .ring_size = RING_SIZE,
					 .stack_limit = PRELOAD_MAX_STACK,
					 .event = on_event,
					 .to_ns = to_ns,
					 .process_in = process_in,
					 .has_ended = has_ended,
					 .ctx = w};

	w->memory = aligned_alloc(4096, bytes);
	memset(w->memory, 0, bytes);
	opts.memory = w->memory;
	*state = w;
	return shared_rings_new(&w->rings, &opts);
}

static int tear_down(void **state)
{
	struct world *w = *state;

	shared_rings_free(w->rings);
	free(w->memory);
	free(w);
	return 0;
}

static uint8_t *place(struct world *w, uint32_t ring)
{
	return (uint8_t *)w->memory + preload_ring_offset(RINGS, RING_SIZE, ring) +
	       (w->memory->rings[ring].head & (RING_SIZE - 1));
}

static void put_free(struct world *w, uint32_t ring, uint64_t time, uint64_t addr)
{
	struct preload_record r = {
		.len = PRELOAD_SMALL, .type = EVENT_FREE, .time = time, .addr = addr};

	memcpy(place(w, ring), &r, PRELOAD_SMALL);
	w->memory->rings[ring].owner = 1ull << 32 | (100 + ring);
	w->memory->rings[ring].head += PRELOAD_SMALL;
}

/* An allocation with @len bytes of stack from SP on, and @nr slices of which @words are given, each
 * word with the value @value. */
static void put_alloc(struct world *w, uint64_t time, uint32_t len, const struct preload_slice *s,
		      uint16_t nr, uint64_t value)
{
	struct preload_alloc a = {.record = {.type = EVENT_ALLOC,
					     .func = FUNC_MALLOC,
					     .nr_slices = nr,
					     .time = time,
					     .addr = time,
					     .size = 8},
				  .sp = SP,
				  .pc = 1,
				  .stack_len = len};
	uint8_t *at = place(w, 0), *out = at + sizeof(a) + ((nr * sizeof(*s) + 7) & ~7ull);

	memcpy(at + sizeof(a), s, nr * sizeof(*s));
	for (uint16_t i = 0; i < nr; i++)
		for (uint16_t k = s[i].words; k; k &= (uint16_t)(k - 1), out += 8)
			memcpy(out, &value, 8);
	a.record.len = (uint32_t)(out - at);
	memcpy(at, &a, sizeof(a));
	w->memory->rings[0].owner = 1ull << 32 | 100;
	w->memory->rings[0].head += a.record.len;
}

static uint64_t bad(const struct world *w)
{
	struct mlk_losses losses = {0};

	shared_rings_losses(w->rings, &losses);
	return losses.count[MLK_LOST_ALLOC];
}

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
	const struct preload_slice slice = {0, 0xffff};
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
	const struct preload_slice whole[] = {{0, 0xffff}, {1, 0xffff}, {2, 0xffff}};
	const struct preload_slice word = {1, 1 << 3};
	struct world *w = *state;
	uint64_t value;

	put_alloc(w, 1, 300, whole, 3, 0x1111);
	put_alloc(w, 2, 300, &word, 1, 0x2222);
	shared_rings_look(w->rings, 1000, 10);
	assert_int_equal(shared_rings_consume(w->rings, UINT64_MAX), 0);
	assert_int_equal(w->nr, 2);
	assert_int_equal(bad(w), 0);
	for (uint32_t at = 0; at + 8 <= 300; at += 8) {
		memcpy(&value, w->seen[1].stack + at, 8);
		assert_int_equal(value, at == 128 - 16 + 24 ? 0x2222 : 0x1111);
	}
}

static void an_event_that_lies_of_its_slices_is_counted_and_the_next_comes(void **state)
{
	const struct preload_slice whole[] = {{0, 0xffff}, {1, 0xffff}, {2, 0xffff}};
	const struct preload_slice twice[] = {{0, 1}, {0, 1}}, far = {9, 1}, part = {3, 1};
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
	static const uint32_t lens[] = {0, 4, 12, 1 << 30, UINT32_MAX, RING_SIZE * 2};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		uint8_t *first = place(w, 0);

		w->nr = 0;
		put_free(w, 0, 5, 16);
		memcpy(first, &lens[i], 4);
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
	size_t nr = preload_ring_offset(RINGS, RING_SIZE, RINGS);
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

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(events_of_all_rings_come_in_the_order_of_their_times),
		IN_WORLD(a_ring_that_is_being_written_holds_later_events_back),
		IN_WORLD(events_are_of_the_process_whose_slot_the_ring_names),
		IN_WORLD(who_has_ended_while_writing_holds_nothing_back),
		IN_WORLD(of_two_events_at_one_time_the_free_comes_first),
		IN_WORLD(a_stack_is_put_together_from_what_changed),
		IN_WORLD(an_event_that_lies_of_its_slices_is_counted_and_the_next_comes),
		IN_WORLD(a_length_that_lies_costs_that_ring_alone),
		IN_WORLD(a_position_that_lies_is_survived),
		IN_WORLD(any_bytes_are_survived),
		IN_WORLD(the_ring_of_an_ended_thread_is_free_when_it_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
