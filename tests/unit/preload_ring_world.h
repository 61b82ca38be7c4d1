/* preload_ring_world.h - rings that a test fills like the preloaded library, and their events */
#ifndef TESTS_PRELOAD_RING_WORLD_H
#define TESTS_PRELOAD_RING_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/event.h"
#include "tests/unit/preload_memory.h"

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

static inline int on_event(void *ctx, uint64_t time_ns, void *data, const struct shared_view *view)
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

static inline void on_named(void *ctx, uint32_t tgid, uint32_t tid, const char *name)
{
	struct world *w = ctx;
	size_t used = strlen(w->names);

	snprintf(w->names + used, sizeof(w->names) - used, "%u/%u %s;", tgid, tid, name);
}

/* Process 7000 + slot is in each slot but the last; that of slot 3 has ended. */
static inline uint32_t process_in(void *ctx, uint32_t slot)
{
	(void)ctx;
	return slot == PRELOAD_MAX_PROCESSES - 1 ? 0 : 7000 + slot;
}

static inline bool has_ended(void *ctx, uint32_t slot)
{
	(void)ctx;
	return slot == 3;
}

static inline int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct shared_rings_opts opts = {.sizes = sizes,
					 .event = on_event,
					 .process_in = process_in,
					 .has_ended = has_ended,
					 .named = on_named,
					 .ctx = w};

	*state = w;
	return share_memory(&w->memory, &w->rings, &opts);
}

static inline int tear_down(void **state)
{
	struct world *w = *state;

	shared_rings_free(w->rings);
	free(w->memory);
	free(w);
	return 0;
}

static inline uint8_t *place(struct world *w, uint32_t ring)
{
	return (uint8_t *)w->memory + preload_ring_offset(&sizes, ring) +
	       (w->memory->rings[ring].head & (RING_SIZE - 1));
}

static inline void put(struct world *w, uint32_t ring, const void *record, uint32_t len)
{
	memcpy(place(w, ring), record, len);
	w->memory->rings[ring].owner = 1ull << 32 | (100 + ring);
	w->memory->rings[ring].head += len;
}

static inline void put_base(struct world *w, uint32_t ring, uint64_t time, uint64_t sp)
{
	struct preload_base b = {
		.len8 = sizeof(b) / 8, .type = PRELOAD_BASE, .time = time, .sp = sp};

	put(w, ring, &b, sizeof(b));
}

/* A free @after units of time. */
static inline void put_free_after(struct world *w, uint32_t ring, uint32_t after, uint64_t addr)
{
	struct preload_record r = {
		.len8 = PRELOAD_SMALL / 8, .type = EVENT_FREE, .after = after, .addr = addr};

	put(w, ring, &r, PRELOAD_SMALL);
}

static inline void put_free(struct world *w, uint32_t ring, uint64_t time, uint64_t addr)
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
static inline void put_stack(struct world *w, struct preload_alloc *a, const struct given *s,
			     uint16_t nr, uint64_t value)
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
static inline void put_alloc(struct world *w, uint64_t time, uint32_t len, const struct given *s,
			     uint16_t nr, uint64_t value)
{
	struct preload_alloc a = {.record = {.addr = time}, .stack_len = len};

	put_base(w, 0, time, SP);
	put_stack(w, &a, s, nr, value);
}

static inline uint64_t bad(const struct world *w)
{
	struct mlk_losses losses = {0};

	shared_rings_losses(w->rings, &losses);
	return losses.count[MLK_LOST_ALLOC];
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
