/* test_unwind_damage.c - stacks that are cut, corrupt, or run through code that is not known */
#include "tests/unit/unwind_live.h"

static struct snapshot snap;

static void release(void)
{
	free(snap.bytes);
	snap.bytes = NULL;
}

static int whole_stack(struct dwunw_frame *frames)
{
	struct dwunw_stack stack = live_stack(&snap);
	enum dwunw_status status;
	int nr = live_capture(live, &snap, &stack, frames, &status);

	assert_int_equal(status, DWUNW_STATUS_ENDED);
	assert_int_equal(nr, snap.nr_pc);
	return nr;
}

static void every_cut_of_the_stack_gives_a_prefix(void **state)
{
	struct dwunw_frame all[LIVE_MAX_FRAMES], frames[LIVE_MAX_FRAMES];
	size_t seen_ended = 0;
	int nr_all, last_nr = 0;

	(void)state;
	live_snapshot_below(20, &snap);
	nr_all = whole_stack(all);
	for (size_t len = 0; len <= snap.len; len++) {
		uint8_t *exact = malloc(len ? len : 1); /* ASan sees a byte too many */
		struct dwunw_stack stack = {snap.addr, exact, len};
		enum dwunw_status status;
		int nr;

		memcpy(exact, snap.bytes, len);
		nr = live_capture(live, &snap, &stack, frames, &status);
		free(exact);
		assert_true(nr >= last_nr && nr <= nr_all);
		last_nr = nr;
		if (status == DWUNW_STATUS_ENDED) {
			assert_int_equal(nr, nr_all);
			seen_ended++;
		} else {
			assert_int_equal(status, DWUNW_STATUS_TRUNCATED);
			assert_int_equal(seen_ended, 0);
			assert_true(frames[nr - 1].flags & DWUNW_FRAME_FLAG_PARTIAL);
			frames[nr - 1].flags &= ~(uint32_t)DWUNW_FRAME_FLAG_PARTIAL;
		}
		assert_memory_equal(frames, all, sizeof(*frames) * (size_t)nr);
		/* Beyond the last frame are the environment and arguments: a few cuts will do. */
		if (seen_ended > 64)
			break;
	}
	assert_true(seen_ended > 0);
	release();
}

static void no_mapping_is_no_cfi(void **state)
{
	struct dwunw_frame all[LIVE_MAX_FRAMES], frames[LIVE_MAX_FRAMES];
	struct dwunw_mapping saved[LIVE_MAX_MAPS];
	struct dwunw_stack stack;
	enum dwunw_status status;
	size_t nr_saved = live->nr_maps;
	int nr, nr_all;

	(void)state;
	live_snapshot_below(3, &snap);
	nr_all = whole_stack(all);
	stack = live_stack(&snap);
	memcpy(saved, live->maps, sizeof(saved));
	for (int gone = 0; gone < nr_all; gone++) {
		/* Without the module of frame `gone`, the walk ends at the first frame in it: which
		 * is one only if it is the innermost. */
		int first = 0;

		while (all[first].module != all[gone].module)
			first++;
		live->nr_maps = 0;
		for (size_t i = 0; i < nr_saved; i++)
			if (saved[i].module != all[gone].module)
				live->maps[live->nr_maps++] = saved[i];
		nr = live_capture(live, &snap, &stack, frames, &status);
		if (first) {
			assert_int_equal(status, DWUNW_STATUS_NOT_CODE);
			assert_int_equal(nr, first);
			assert_true(frames[first - 1].flags & DWUNW_FRAME_FLAG_PARTIAL);
			continue;
		}
		assert_int_equal(status, DWUNW_STATUS_NO_CFI);
		assert_int_equal(nr, first + 1);
		assert_int_equal(frames[first].module, DWUNW_NO_MODULE);
		assert_int_equal(frames[first].addr, frames[first].pc);
		assert_int_equal(frames[first].pc, all[first].pc);
		assert_true(frames[first].flags & DWUNW_FRAME_FLAG_PARTIAL);
	}
	memcpy(live->maps, saved, sizeof(saved));
	live->nr_maps = nr_saved;
	release();
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* A word that an unwinder may take for something: an address of code or of the stack, or anything.
 */
static uint64_t evil_word(uint64_t *seed)
{
	const struct dwunw_mapping *map = &live->maps[next_random(seed) % live->nr_maps];

	switch (next_random(seed) % 4) {
	case 0:
		return next_random(seed);
	case 1:
		return snap.addr + next_random(seed) % (snap.len + 64) - 32;
	default:
		return map->start + next_random(seed) % (map->end - map->start);
	}
}

static void a_corrupt_stack_ends(void **state)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	size_t seen[DWUNW_STATUS_NR] = {0};
	uint64_t regs[DWUNW_MAX_ARCH_REGS];
	uint8_t *whole;

	(void)state;
	live_snapshot_below(5, &snap);
	snap.len = snap.len < 4096 ? snap.len : 4096;
	whole = malloc(snap.len);
	memcpy(whole, snap.bytes, snap.len);
	memcpy(regs, snap.regs, sizeof(regs));
	for (uint64_t n = 1; n <= 6000; n++) {
		uint64_t seed = n * 0x9e3779b97f4a7c15u, word;
		size_t nr_words = n % 3 ? n % 40 : snap.len / 8;
		uint8_t *exact = malloc(snap.len);
		struct dwunw_stack stack = {snap.addr, exact, snap.len};
		enum dwunw_status status;
		int nr;

		memcpy(exact, whole, snap.len);
		for (size_t i = 0; i < nr_words; i++) {
			word = evil_word(&seed);
			memcpy(exact + next_random(&seed) % (snap.len / 8) * 8, &word, 8);
		}
		if (n % 5 == 0)
			for (int r = 0; r < DWUNW_MAX_ARCH_REGS; r++)
				snap.regs[r] = evil_word(&seed);
		nr = live_capture(live, &snap, &stack, frames, &status);
		memcpy(snap.regs, regs, sizeof(regs));
		free(exact);
		assert_in_range(nr, 1, LIVE_MAX_FRAMES);
		assert_true(status < DWUNW_STATUS_NR);
		seen[status]++;
	}
	assert_true(seen[DWUNW_STATUS_BAD_MEMORY] && seen[DWUNW_STATUS_NO_CFI]);
	free(whole);
	release();
}

/* A function whose CFA is rbp + 16 throughout. */
__asm__(".text\n"
	".type by_frame_pointer, @function\n"
	"by_frame_pointer:\n\t.cfi_startproc\n\t.cfi_def_cfa %rbp, 16\n\t.cfi_offset %rbp, -16\n\t"
	"nop\n\tnop\n\tnop\n\tret\n\t.cfi_endproc\n"
	".size by_frame_pointer, . - by_frame_pointer\n");

extern char by_frame_pointer[];

static int capture_from_rbp(const uint64_t *words, uint64_t rbp, enum dwunw_status *status)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];
	struct snapshot s = {.regs = {0}};
	struct dwunw_stack stack = {0x7000, (const uint8_t *)words, 64};

	s.regs[DWUNW_X86_64_RSP] = 0x7000;
	s.regs[DWUNW_X86_64_RBP] = rbp;
	s.regs[DWUNW_X86_64_RIP] = (uint64_t)(uintptr_t)by_frame_pointer + 2;
	return live_capture(live, &s, &stack, frames, status);
}

static void the_cfa_must_grow(void **state)
{
	uint64_t pc = (uint64_t)(uintptr_t)by_frame_pointer + 2;
	/* At 0x7000 a frame that is its own caller, at 0x7010 one that ends the stack, and at
	 * 0x7020 one whose caller's frame is the one before it. */
	const uint64_t words[8] = {0x7000, pc, 0, 0, 0x7010, pc, 0, 0};
	enum dwunw_status status;

	(void)state;
	assert_int_equal(capture_from_rbp(words, 0x7010, &status), 1);
	assert_int_equal(status, DWUNW_STATUS_ENDED);
	assert_int_equal(capture_from_rbp(words, 0x7000, &status), 2);
	assert_int_equal(status, DWUNW_STATUS_BAD_MEMORY);
	assert_int_equal(capture_from_rbp(words, 0x7020, &status), 2);
	assert_int_equal(status, DWUNW_STATUS_BAD_MEMORY);
	/* CFA = sp, and the return address below the stack. */
	assert_int_equal(capture_from_rbp(words, 0x7000 - 16, &status), 1);
	assert_int_equal(status, DWUNW_STATUS_BAD_MEMORY);
	assert_int_equal(capture_from_rbp(words, 0x7000 + 64, &status), 1);
	assert_int_equal(status, DWUNW_STATUS_TRUNCATED);
}

/* The outermost function of a program in assembly: without call frame information. */
__asm__(".text\n"
	".type no_cfi, @function\n"
	"no_cfi:\n\tnop\n\tnop\n\tnop\n\tret\n"
	".size no_cfi, . - no_cfi\n");

extern char no_cfi[];

/* Unwind from by_frame_pointer, whose frame of @words ends at 0x7010, with the flags of an event.
 */
static enum dwunw_status status_with_flags(const uint64_t *words, size_t nr_words, uint32_t flags)
{
	uint64_t regs[DWUNW_MAX_ARCH_REGS] = {[DWUNW_X86_64_RSP] = 0x7000,
					      [DWUNW_X86_64_RBP] = 0x7000,
					      [DWUNW_X86_64_RIP] =
						      (uint64_t)(uintptr_t)by_frame_pointer + 2};
	struct dwunw_stack stack = {0x7000, (const uint8_t *)words, nr_words * sizeof(*words)};
	struct dwunw_frame frames[4];
	struct dwunw_regset rs;
	struct dwunw_space *space;
	enum dwunw_status status;
	int nr;

	assert_int_equal(dwunw_space_new(&space, live->dw, live->maps, live->nr_maps), 0);
	assert_int_equal(dwunw_regset_prepare(&rs, regs, DWUNW_MAX_ARCH_REGS, flags), 0);
	nr = unwind_once(space, PLAIN_SAMPLE(&rs, &stack), frames, 4, &status);
	assert_true(nr >= 1);
	assert_int_equal(!(frames[nr - 1].flags & DWUNW_FRAME_FLAG_PARTIAL),
			 status == DWUNW_STATUS_ENDED);
	dwunw_space_free(space);
	return status;
}

static void a_zero_from_a_missing_page_is_no_end(void **state)
{
	const uint64_t words[2] = {0};

	(void)state;
	assert_int_equal(status_with_flags(words, 2, 0), DWUNW_STATUS_ENDED);
	assert_int_equal(status_with_flags(words, 2, DWUNW_EVENT_STACK_FAULT),
			 DWUNW_STATUS_TRUNCATED);
	assert_int_equal(status_with_flags(words, 2, DWUNW_EVENT_STACK_LIMIT), DWUNW_STATUS_ENDED);
}

static void no_cfi_at_the_end_of_a_whole_stack_is_its_end(void **state)
{
	const uint64_t words[3] = {0, (uint64_t)(uintptr_t)no_cfi + 2, 0};
	static const uint32_t cut[] = {DWUNW_EVENT_STACK_LIMIT, DWUNW_EVENT_STACK_DEGRADED,
				       DWUNW_EVENT_STACK_UNBOUNDED};

	(void)state;
	assert_int_equal(status_with_flags(words, 2, 0), DWUNW_STATUS_ENDED);
	assert_int_equal(status_with_flags(words, 2, DWUNW_EVENT_RETURN_ADDRESS),
			 DWUNW_STATUS_ENDED);
	assert_int_equal(status_with_flags(words, 3, 0), DWUNW_STATUS_NO_CFI);
	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++)
		assert_int_equal(status_with_flags(words, 2, cut[i]), DWUNW_STATUS_NO_CFI);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cut_of_the_stack_gives_a_prefix),
		cmocka_unit_test(no_mapping_is_no_cfi),
		cmocka_unit_test(a_corrupt_stack_ends),
		cmocka_unit_test(the_cfa_must_grow),
		cmocka_unit_test(a_zero_from_a_missing_page_is_no_end),
		cmocka_unit_test(no_cfi_at_the_end_of_a_whole_stack_is_its_end),
	};

	return cmocka_run_group_tests(tests, live_setup, live_teardown);
}
