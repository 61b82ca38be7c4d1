/* test_unwind_not_code.c - a word that is no address of code is no frame, and ends the stack */
#include "tests/unit/unwind_live.h"

static struct snapshot snap;

/* The frames that are found of the snapshot, and why there are no more. */
static int unwind_event(uint32_t event_flags, uint32_t flags, struct dwunw_frame *frames,
			enum dwunw_status *status)
{
	struct dwunw_stack stack = live_stack(&snap);
	struct dwunw_sample sample;
	struct dwunw_space *space;
	struct dwunw_regset rs;
	int nr;

	assert_int_equal(dwunw_space_new(&space, live->dw, live->maps, live->nr_maps), 0);
	assert_int_equal(dwunw_regset_prepare(&rs, snap.regs, DWUNW_MAX_ARCH_REGS, event_flags), 0);
	sample = *PLAIN_SAMPLE(&rs, &stack);
	sample.flags = flags;
	nr = unwind_once(space, &sample, frames, LIVE_MAX_FRAMES, status);
	dwunw_space_free(space);
	return nr;
}

static int unwind(uint32_t flags, struct dwunw_frame *frames, enum dwunw_status *status)
{
	return unwind_event(0, flags, frames, status);
}

/* Where the snapshot has the return address of frame @frame - 1, which libgcc found: the only word,
 * counted from the innermost, that is that, and behind those of the frames before. */
static uint8_t *slot_of(size_t frame)
{
	uint8_t *at = snap.bytes;

	for (size_t i = 1; i <= frame; i++, at += sizeof(uint64_t))
		while (memcmp(at, &snap.pc[i], sizeof(uint64_t)) != 0)
			at += sizeof(uint64_t);
	return at - sizeof(uint64_t);
}

static void a_return_address_that_is_not_code_ends_the_stack(void **state)
{
	static const uint32_t ways[] = {0, DWUNW_SAMPLE_GUESS, DWUNW_SAMPLE_FULL};
	static const size_t places[] = {3, 7, 15};
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	uint64_t *heap = malloc(sizeof(*heap));
	enum dwunw_status status;

	(void)state;
	live_snapshot_below(20, &snap);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		const uint64_t wrong[] = {(uint64_t)(uintptr_t)heap, snap.addr + 4096, 5,
					  UINT64_MAX};
		uint8_t *slot = slot_of(places[i]);

		for (size_t w = 0; w < 3 * sizeof(wrong) / sizeof(*wrong); w++) {
			memcpy(slot, &wrong[w / 3], sizeof(uint64_t));
			assert_int_equal(unwind(ways[w % 3], frames, &status), places[i]);
			assert_int_equal(status, DWUNW_STATUS_NOT_CODE);
			for (size_t f = 1; f < places[i]; f++)
				assert_int_equal(frames[f].pc, snap.pc[f]);
		}
		memcpy(slot, &snap.pc[places[i]], sizeof(uint64_t));
		assert_int_equal(unwind(0, frames, &status), snap.nr_pc);
		assert_int_equal(status, DWUNW_STATUS_ENDED);
	}
	free(heap);
	free(snap.bytes);
}

/* What runs is a frame, wherever it is. */
static void a_pc_that_is_not_code_is_a_frame(void **state)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	enum dwunw_status status;

	(void)state;
	live_snapshot_below(1, &snap);
	snap.regs[DWUNW_X86_64_RIP] = snap.addr;
	assert_int_equal(unwind(0, frames, &status), 1);
	assert_int_equal(frames[0].pc, snap.addr);
	assert_int_equal(status, DWUNW_STATUS_NO_CFI);
	free(snap.bytes);
}

/* Which is no fault of the stack's size.  Twice: the second time both are known. */
static void a_stack_cut_for_want_of_room_is_told_from_one_that_is_too_deep(void **state)
{
	static const uint32_t ways[] = {0, DWUNW_SAMPLE_GUESS, DWUNW_SAMPLE_FULL};
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	enum dwunw_status status;

	(void)state;
	live_snapshot_below(20, &snap);
	snap.len = (size_t)(slot_of(9) - snap.bytes);
	for (size_t i = 0; i < 2 * sizeof(ways) / sizeof(*ways); i++) {
		assert_int_equal(
			unwind_event(DWUNW_EVENT_STACK_LIMIT, ways[i / 2], frames, &status), 9);
		assert_int_equal(status, DWUNW_STATUS_TRUNCATED);
		assert_int_equal(
			unwind_event(DWUNW_EVENT_STACK_DEGRADED, ways[i / 2], frames, &status), 9);
		assert_int_equal(status, DWUNW_STATUS_DEGRADED);
	}
	free(snap.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_return_address_that_is_not_code_ends_the_stack),
		cmocka_unit_test(a_pc_that_is_not_code_is_a_frame),
		cmocka_unit_test(a_stack_cut_for_want_of_room_is_told_from_one_that_is_too_deep),
	};

	return cmocka_run_group_tests(tests, live_setup, live_teardown);
}
