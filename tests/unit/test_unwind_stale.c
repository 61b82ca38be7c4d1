/* test_unwind_stale.c - frames that rest on bytes older than the event are marked */
#include <errno.h>

#include "tests/unit/unwind_live.h"

static struct snapshot snap;

static enum dwunw_status unwind(uint64_t stale_from, uint32_t flags, struct dwunw_frame *frames,
				int *nr)
{
	struct dwunw_stack stack = live_stack(&snap);
	struct dwunw_sample sample;
	struct dwunw_space *space;
	struct dwunw_regset rs;
	enum dwunw_status status;

	assert_int_equal(dwunw_space_new(&space, live->dw, live->maps, live->nr_maps), 0);
	assert_int_equal(dwunw_regset_prepare(&rs, snap.regs, DWUNW_MAX_ARCH_REGS, 0), 0);
	sample = *PLAIN_SAMPLE(&rs, &stack);
	sample.stale_from = stale_from;
	sample.flags = flags;
	*nr = unwind_once(space, &sample, frames, LIVE_MAX_FRAMES, &status);
	dwunw_space_free(space);
	return status;
}

/* How many frames are found without the bytes from @end on. */
static int frames_below(uint64_t end)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	struct snapshot whole = snap;
	int nr;

	snap.len = end - snap.addr;
	unwind(UINT64_MAX, 0, frames, &nr);
	snap = whole;
	return nr;
}

/* The sure frames are those that a stack which ends where the old bytes begin would have. */
static void frames_beyond_the_fresh_bytes_are_stale(void **state)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	uint64_t end;
	int nr, seen = 0;

	(void)state;
	live_snapshot_below(20, &snap);
	end = snap.addr + snap.len;
	assert_int_equal(unwind(end, 0, frames, &nr), DWUNW_STATUS_ENDED);
	for (uint64_t from = snap.addr; from < end; from += 40) {
		uint32_t flags = from % 80 ? 0 : DWUNW_SAMPLE_FULL;
		enum dwunw_status status = unwind(from, flags, frames, &nr);
		int fresh = frames_below(from);

		assert_int_equal(nr, snap.nr_pc);
		assert_int_equal(status, fresh == nr ? DWUNW_STATUS_ENDED : DWUNW_STATUS_STALE);
		for (int i = 0; i < nr; i++) {
			assert_int_equal(frames[i].pc, i ? snap.pc[i] : frames[0].pc);
			assert_int_equal(!!(frames[i].flags & DWUNW_FRAME_FLAG_STALE), i >= fresh);
		}
		seen += status == DWUNW_STATUS_STALE;
	}
	assert_true(seen > 20);
	free(snap.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_beyond_the_fresh_bytes_are_stale),
	};

	return cmocka_run_group_tests(tests, live_setup, live_teardown);
}
