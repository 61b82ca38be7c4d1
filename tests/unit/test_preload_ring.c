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
#include "record/preload/ring/merge_rings.h"

#define RINGS	  4u
#define RING_SIZE 65536u

static const struct preload_sizes sizes = {
	.nr_rings = RINGS, .ring_size = RING_SIZE, .large_size = RING_SIZE};
#define SP 0x7fff00001010ull

struct seen {
	uint32_t type;
	uint64_t id, addr, time_ns, kept_from, regs[EVENT_NR_REGS];
	uint32_t stack_len;
	uint8_t stack[4096];
};

struct world {
	struct preload_header *memory;
	struct shared_rings *rings;
	struct seen seen[64];
	unsigned int nr;
	char names[256]; /* each with its thread */
};

static int on_event(void *ctx, uint64_t time_ns, void *data, const struct shared_view *view)
{
	struct world *w = ctx;
	const struct event_small *small = data;
	const struct event_alloc *alloc = data;
	struct seen *s = &w->seen[w->nr++ % 64];

	s->type = small->head.type;
	s->time_ns = time_ns;
	if (small->head.type != EVENT_ALLOC) {
		s->addr = small->addr;
		s->id = small->id;
		return 0;
	}
	assert_non_null(view);
	assert_int_equal(alloc->time_ns, time_ns);
	s->addr = alloc->addr;
	memcpy(s->regs, alloc->regs, sizeof(s->regs));
	s->kept_from = view->kept_from;
	s->stack_len = view->len;
	memcpy(s->stack, view->bytes,
	       s->stack_len < sizeof(s->stack) ? s->stack_len : sizeof(s->stack));
	return 0;
}

static void on_named(void *ctx, uint32_t tgid, uint32_t tid, const char *name)
{
	struct world *w = ctx;
	size_t used = strlen(w->names);

	snprintf(w->names + used, sizeof(w->names) - used, "%u/%u %s;", tgid, tid, name);
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
	size_t bytes = preload_ring_offset(&sizes, RINGS);
	struct shared_rings_opts opts = {.sizes = sizes,
					 .stack_limit = PRELOAD_MAX_STACK,
					 .event = on_event,
					 .to_ns = to_ns,
					 .process_in = process_in,
					 .has_ended = has_ended,
					 .named = on_named,
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
	return (uint8_t *)w->memory + preload_ring_offset(&sizes, ring) +
	       (w->memory->rings[ring].head & (RING_SIZE - 1));
}

static void put(struct world *w, uint32_t ring, const void *record, uint32_t len)
{
	memcpy(place(w, ring), record, len);
	w->memory->rings[ring].owner = 1ull << 32 | (100 + ring);
	w->memory->rings[ring].head += len;
}

static void put_base(struct world *w, uint32_t ring, uint64_t time, uint64_t sp)
{
	struct preload_base b = {
		.len8 = sizeof(b) / 8, .type = PRELOAD_BASE, .time = time, .sp = sp};

	put(w, ring, &b, sizeof(b));
}

/* A free @after units of time. */
static void put_free_after(struct world *w, uint32_t ring, uint32_t after, uint64_t addr)
{
	struct preload_record r = {
		.len8 = PRELOAD_SMALL / 8, .type = EVENT_FREE, .after = after, .addr = addr};

	put(w, ring, &r, PRELOAD_SMALL);
}

static void put_free(struct world *w, uint32_t ring, uint64_t time, uint64_t addr)
{
	put_base(w, ring, time, SP);
	put_free_after(w, ring, 0, addr);
}

/* What of a slice is given: bit i of @halves, the i-th 4 bytes. */
struct given {
	uint16_t index;
	uint32_t halves;
};

#define ALL UINT32_MAX

/* An allocation that begins as @a, with @nr slices of which some halves are given, so that each
 * word has the value @value; registers of @a->regs have it, too. */
static void put_stack(struct world *w, struct preload_alloc *a, const struct given *s, uint16_t nr,
		      uint64_t value)
{
	uint32_t bytes[2048], *out = bytes + preload_alloc_head(nr) / 4;

	memset(bytes, 0, sizeof(bytes));
	for (int k = a->regs; k; k &= k - 1, out += 2)
		memcpy(out, &value, 8);
	for (uint16_t i = 0; i < nr; i++) {
		memcpy((uint8_t *)bytes + PRELOAD_ALLOC + 4 * i, &s[i].halves, 4);
		memcpy((uint8_t *)bytes + PRELOAD_ALLOC + 4 * nr + 2 * i, &s[i].index, 2);
		for (uint32_t k = s[i].halves; k; k &= k - 1)
			*out++ = (uint32_t)(value >> (__builtin_ctz(k) & 1) * 32);
	}
	a->record.len8 = (uint16_t)((out - bytes + 1) / 2);
	a->record.type = EVENT_ALLOC;
	a->record.func = FUNC_MALLOC;
	a->record.size = 8;
	a->pc = 1;
	a->nr_slices = nr;
	memcpy(bytes, a, PRELOAD_ALLOC);
	put(w, 0, bytes, a->record.len8 * 8u);
}

/* An allocation with @len bytes of stack from SP on. */
static void put_alloc(struct world *w, uint64_t time, uint32_t len, const struct given *s,
		      uint16_t nr, uint64_t value)
{
	struct preload_alloc a = {.record = {.addr = time}, .stack_len = len};

	put_base(w, 0, time, SP);
	put_stack(w, &a, s, nr, value);
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
		IN_WORLD(rings_of_two_sizes_stand_one_behind_the_other),
		IN_WORLD(any_bytes_are_survived),
		IN_WORLD(times_stack_pointers_and_registers_are_told_by_what_changed),
		IN_WORLD(an_event_that_counts_from_nothing_is_none),
		IN_WORLD(the_ring_of_an_ended_thread_is_free_when_it_is_empty),
		IN_WORLD(a_thread_is_named_before_its_first_event_and_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
