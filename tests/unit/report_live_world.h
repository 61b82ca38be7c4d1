/* report_live_world.h - for the tests of live blocks: events by hand, and the sums at the end */
#ifndef TESTS_REPORT_LIVE_WORLD_H
#define TESTS_REPORT_LIVE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/live/live.h"

#define TGID 100

static inline void send(struct live *live, struct mlk_event event)
{
	if (!event.tgid)
		event.tgid = TGID;
	assert_int_equal(live_event(live, &event, (uint32_t)event.alloc_id), 0);
}

static inline void alloc(struct live *live, uint32_t tid, uint64_t addr, uint64_t size)
{
	send(live, (struct mlk_event){.kind = MLK_ALLOC, .tid = tid, .addr = addr, .size = size});
}

static inline void other(struct live *live, enum mlk_kind kind, uint32_t tid, uint64_t addr)
{
	send(live, (struct mlk_event){.kind = kind, .tid = tid, .addr = addr});
}

static inline void nested_free(struct live *live, uint32_t tid, uint64_t addr)
{
	send(live, (struct mlk_event){
			   .kind = MLK_FREE, .flags = MLK_EVENT_NESTED, .tid = tid, .addr = addr});
}

static inline struct live *start(void)
{
	struct live *live;

	assert_int_equal(live_new(&live), 0);
	return live;
}

static inline void check_amount(struct live_amount amount, uint64_t blocks, uint64_t bytes)
{
	assert_int_equal(amount.blocks, blocks);
	assert_int_equal(amount.bytes, bytes);
}

static inline void check_sums(const struct live *live)
{
	const struct live_totals *t = live_totals(live);

	check_amount(t->allocated,
		     t->freed.blocks + t->outstanding.blocks + t->implied.blocks + t->gone.blocks,
		     t->freed.bytes + t->outstanding.bytes + t->implied.bytes + t->gone.bytes);
}

/* Finish, and check what is outstanding, freed and unknown. */
static inline const struct live_totals *finish(struct live *live, uint64_t blocks, uint64_t freed,
					       uint64_t unknown)
{
	live_finish(live);
	check_sums(live);
	assert_int_equal(live_totals(live)->outstanding.blocks, blocks);
	assert_int_equal(live_totals(live)->freed.blocks, freed);
	assert_int_equal(live_totals(live)->unknown_frees, unknown);
	return live_totals(live);
}

#endif
