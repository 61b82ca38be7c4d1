/* test_unwind_known.c - stacks that were met before are found the short way, and are the right ones
 *
 * What a stack must come to is what libgcc said at that moment, or what the walk with all registers
 * comes to; that the short way was taken shows in the long one's notes being untouched.
 */
#include "tests/unit/unwind_live.h"
#include "unwind/tree/prefix_match.h"
#include "unwind/walk/walk.h"

#define NOINLINE __attribute__((noinline, noclone))

#define NO_TAIL_CALL() __asm__ volatile("" : : : "memory")

#define UNTOUCHED UINT32_MAX
#define DEPTH	  6
#define NR_PATHS  (1u << DEPTH)

static struct snapshot snaps[NR_PATHS];
static unsigned int path; /* bit by bit: is the next one called right() ? */

NOINLINE static int left(unsigned int depth);

NOINLINE static int right(unsigned int depth)
{
	int sum = 1;

	if (depth == DEPTH)
		live_snapshot(live, &snaps[path]);
	else
		sum = path >> depth & 1 ? right(depth + 1) : left(depth + 1);
	NO_TAIL_CALL();
	return sum + 1;
}

NOINLINE static int left(unsigned int depth)
{
	int sum = 2;

	if (depth == DEPTH)
		live_snapshot(live, &snaps[path]);
	else
		sum = path >> depth & 1 ? right(depth + 1) : left(depth + 1);
	NO_TAIL_CALL();
	return sum + 1;
}

static int setup(void **state)
{
	live_setup(state);
	for (path = 0; path < NR_PATHS; path++)
		left(0);
	return 0;
}

static int teardown(void **state)
{
	for (size_t i = 0; i < NR_PATHS; i++)
		free(snaps[i].bytes);
	return live_teardown(state);
}

static struct dwunw_space *new_space(size_t nr_maps)
{
	struct dwunw_space *space;

	assert_int_equal(dwunw_space_new(&space, live->dw, live->maps, nr_maps), 0);
	return space;
}

/* Unwind the first @len bytes of @s; returns whether the long way was taken. */
static bool unwind(struct dwunw_space *space, const struct snapshot *s, size_t len,
		   struct dwunw_result *result)
{
	struct dwunw_stacks *stacks = live->dw->stacks;
	struct dwunw_stack stack = {s->addr, s->bytes, len};
	struct dwunw_regset regs;

	assert_int_equal(dwunw_regset_prepare(&regs, s->regs, DWUNW_MAX_ARCH_REGS, 0), 0);
	stacks->runs[0].place = UNTOUCHED;
	assert_int_equal(dwunw_capture(space, PLAIN_SAMPLE(&regs, &stack), NULL, 0, result), 0);
	return stacks->runs[0].place != UNTOUCHED;
}

/* By the walk with all registers. */
static void unwind_full(struct dwunw_space *space, const struct snapshot *s, size_t len,
			struct dwunw_result *result)
{
	struct dwunw_stack stack = {s->addr, s->bytes, len};
	struct dwunw_sample sample;
	struct dwunw_regset regs;

	assert_int_equal(dwunw_regset_prepare(&regs, s->regs, DWUNW_MAX_ARCH_REGS, 0), 0);
	sample = *PLAIN_SAMPLE(&regs, &stack);
	sample.flags = DWUNW_SAMPLE_FULL;
	assert_int_equal(dwunw_capture(space, &sample, NULL, 0, result), 0);
}

static void assert_is_libgcc_s(const struct snapshot *s, const struct dwunw_result *result)
{
	struct dwunw_frame frames[LIVE_MAX_FRAMES];

	assert_int_equal(result->status, DWUNW_STATUS_ENDED);
	assert_int_equal(result->nr_frames, s->nr_pc);
	assert_int_equal(dwunw_stack_frames(live->dw, result->id, frames, LIVE_MAX_FRAMES),
			 s->nr_pc);
	for (size_t i = 1; i < s->nr_pc; i++)
		assert_int_equal(frames[i].pc, s->pc[i]);
}

static void a_stack_met_again_takes_the_short_way(void **state)
{
	struct dwunw_space *space = new_space(live->nr_maps);
	struct dwunw_result result;

	(void)state;
	for (size_t i = 0; i < NR_PATHS; i++) {
		assert_true(unwind(space, &snaps[i], snaps[i].len, &result));
		assert_is_libgcc_s(&snaps[i], &result);
	}
	for (size_t i = 0; i < NR_PATHS; i++) {
		assert_false(unwind(space, &snaps[i], snaps[i].len, &result));
		assert_is_libgcc_s(&snaps[i], &result);
	}
	dwunw_space_free(space);
}

static void a_stack_that_is_cut_is_known_as_such(void **state)
{
	struct dwunw_space *space = new_space(live->nr_maps);
	struct dwunw_result known, full;
	size_t nr_short = 0, nr = 0;

	(void)state;
	for (int again = 0; again < 2; again++)
		for (size_t i = 0; i < NR_PATHS; i += 7)
			for (size_t len = 0; len < snaps[i].len; len += 8) {
				nr_short += !unwind(space, &snaps[i], len, &known) && again;
				nr += again;
				unwind_full(space, &snaps[i], len, &full);
				assert_int_equal(known.id, full.id);
				assert_int_equal(known.status, full.status);
				assert_int_equal(known.nr_frames, full.nr_frames);
			}
	/* All but those with too few bytes for any frame. */
	assert_true(nr_short >= nr - 2 * NR_PATHS);
	dwunw_space_free(space);
}

static void one_other_word_is_another_stack(void **state)
{
	struct dwunw_space *space = new_space(live->nr_maps);
	struct dwunw_result known, full;

	(void)state;
	for (size_t i = 0; i < NR_PATHS; i++)
		unwind(space, &snaps[i], snaps[i].len, &known);
	for (size_t at = 0; at + 8 <= snaps[0].len; at += 8) {
		uint64_t word, other = snaps[0].pc[1] + 1;

		memcpy(&word, snaps[0].bytes + at, 8);
		for (int times = 0; times < 3; times++, other = 0) {
			memcpy(snaps[0].bytes + at, &other, 8);
			unwind(space, &snaps[0], snaps[0].len, &known);
			unwind_full(space, &snaps[0], snaps[0].len, &full);
			assert_int_equal(known.id, full.id);
			assert_int_equal(known.status, full.status);
			assert_int_equal(known.nr_frames, full.nr_frames);
		}
		memcpy(snaps[0].bytes + at, &word, 8);
	}
	dwunw_space_free(space);
}

static void what_is_known_of_one_epoch_says_nothing_of_another(void **state)
{
	struct dwunw_space *space = new_space(live->nr_maps), *empty = new_space(0);
	struct dwunw_result result;

	(void)state;
	for (int times = 0; times < 2; times++) {
		unwind(space, &snaps[0], snaps[0].len, &result);
		assert_int_equal(result.nr_frames, snaps[0].nr_pc);
		assert_true(unwind(empty, &snaps[0], snaps[0].len, &result));
		assert_int_equal(result.nr_frames, 1);
		assert_int_equal(result.status, DWUNW_STATUS_NO_CFI);
	}
	dwunw_space_free(empty);
	dwunw_space_free(space);
}

static const struct dwunw_fork *learn(struct dwunw_fork fork)
{
	struct dwunw_stacks *stacks = live->dw->stacks;

	dwunw_prefix_match_learn(&stacks->forks, &stacks->tree, &fork);
	return dwunw_prefix_match_find(&stacks->forks, fork.word, fork.from, fork.nr, fork.space);
}

static void a_fork_that_is_not_true_is_not_learnt(void **state)
{
	struct dwunw_space *space = new_space(live->nr_maps);
	struct dwunw_result one, other;
	/* left and right part after live_snapshot(), the last of the path; others later */
	const struct snapshot *s = &snaps[1u << (DEPTH - 2)];
	struct dwunw_fork fork = {.nr = 2, .space = UINT32_MAX, .word = s->pc[2]};

	(void)state;
	unwind(space, &snaps[0], snaps[0].len, &one);
	unwind(space, s, s->len, &other);
	assert_int_equal(snaps[0].pc[1], s->pc[1]);
	assert_int_not_equal(snaps[0].pc[2], s->pc[2]);
	fork.from = one.id;
	fork.to = other.id;
	fork.word++; /* no frame is there */
	assert_null(learn(fork));
	fork.word--;
	fork.nr = 3; /* the frames before are not the same */
	fork.word = s->pc[3];
	assert_null(learn(fork));
	fork.word = s->pc[2];
	fork.nr = 2 | DWUNW_FORK_END;
	assert_null(learn(fork));
	fork.nr = 2;
	assert_non_null(learn(fork));
	dwunw_space_free(space);
}

static void forks_are_kept_up_to_a_bound(void **state)
{
	struct dwunw_stacks *stacks = live->dw->stacks;
	struct dwunw_fork fork = {.space = UINT32_MAX - 1, .to = 1};
	size_t found = 0;

	(void)state;
	for (fork.word = 1; fork.word <= 100000; fork.word++)
		dwunw_prefix_match_learn(&stacks->forks, &stacks->tree, &fork);
	for (uint64_t word = 1; word <= 100000; word++)
		found += !!dwunw_prefix_match_find(&stacks->forks, word, 0, 0, fork.space);
	assert_true(found > 99900);
	for (; fork.word <= 800000; fork.word++)
		dwunw_prefix_match_learn(&stacks->forks, &stacks->tree, &fork);
	assert_int_equal(stacks->forks.mask, (1u << 20) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_met_again_takes_the_short_way),
		cmocka_unit_test(a_stack_that_is_cut_is_known_as_such),
		cmocka_unit_test(one_other_word_is_another_stack),
		cmocka_unit_test(what_is_known_of_one_epoch_says_nothing_of_another),
		cmocka_unit_test(a_fork_that_is_not_true_is_not_learnt),
		cmocka_unit_test(forks_are_kept_up_to_a_bound),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
