/* test_report_stacks.c - each stack is stored once, and what stacks have in common, too */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/base/hash_index.h"
#include "report/stats/stacks.h"

static struct dwunw *dw;

static struct stacks *start(void)
{
	struct stacks *stacks;

	assert_int_equal(dwunw_new(&dw), 0);
	assert_int_equal(stacks_new(&stacks, dw), 0);
	return stacks;
}

static void finish(struct stacks *stacks)
{
	stacks_free(stacks);
	dwunw_free(dw);
}

static uint32_t intern_stack(struct stacks *stacks, const struct dwunw_frame *frames, size_t nr,
			     enum dwunw_status status)
{
	uint32_t number = UINT32_MAX, id = 0;

	assert_int_equal(dwunw_stack_intern(dw, frames, nr, status, &id), 0);
	assert_int_not_equal(id, 0);
	assert_true(id < dwunw_stack_limit(dw));
	assert_int_equal(stacks_add(stacks, id, 0, &number), 0);
	assert_true(number < stacks->nr);
	return number;
}

/* The last frame of an incomplete stack comes back with the flag that says so. */
static void check_frames(const struct stacks *stacks, uint32_t number,
			 const struct dwunw_frame *frames, size_t nr)
{
	static struct dwunw_frame mine[STACK_MAX_FRAMES];
	uint32_t id = stacks->all[number].id;

	assert_int_equal(stacks_frames(stacks, number, mine), nr);
	if (nr && stacks->all[number].status != DWUNW_STATUS_ENDED) {
		assert_int_equal(mine[nr - 1].flags,
				 frames[nr - 1].flags | DWUNW_FRAME_FLAG_PARTIAL);
		mine[nr - 1].flags = frames[nr - 1].flags;
	}
	if (nr)
		assert_memory_equal(mine, frames, nr * sizeof(*frames));
	/* all its callers are stacks, too */
	for (size_t at = 0; at < nr; at++)
		id = dwunw_stack_parent(dw, id);
	assert_int_not_equal(id, 0);
	assert_int_equal(dwunw_stack_parent(dw, id), 0);
}

static void a_stack_is_its_frames_and_its_status(void **state)
{
	const struct dwunw_frame frames[] = {{3, 33, 0, 0}, {2, 22, 0, 1}, {1, 11, 1, 1}};
	struct stacks *stacks = start();

	(void)state;
	assert_int_equal(intern_stack(stacks, frames, 3, DWUNW_STATUS_ENDED), 0);
	assert_int_equal(intern_stack(stacks, frames, 3, DWUNW_STATUS_NO_CFI), 1);
	assert_int_equal(intern_stack(stacks, frames, 2, DWUNW_STATUS_ENDED), 2);
	assert_int_equal(intern_stack(stacks, frames + 1, 2, DWUNW_STATUS_ENDED), 3);
	assert_int_equal(intern_stack(stacks, frames, 0, DWUNW_STATUS_NO_CFI), 4);
	assert_int_equal(intern_stack(stacks, frames, 3, DWUNW_STATUS_ENDED), 0);
	assert_int_equal(intern_stack(stacks, frames + 1, 2, DWUNW_STATUS_ENDED), 3);
	assert_int_equal(intern_stack(stacks, NULL, 0, DWUNW_STATUS_NO_CFI), 4);
	check_frames(stacks, 0, frames, 3);
	check_frames(stacks, 1, frames, 3);
	check_frames(stacks, 2, frames, 2);
	check_frames(stacks, 3, frames + 1, 2);
	check_frames(stacks, 4, frames, 0);
	assert_int_equal(stacks->all[1].status, DWUNW_STATUS_NO_CFI);
	finish(stacks);
}

static void every_part_of_a_frame_counts(void **state)
{
	const struct dwunw_frame all[] = {
		{1, 1, 0, 0}, {2, 1, 0, 0}, {1, 2, 0, 0}, {1, 1, 1, 0}, {1, 1, 0, 1}};
	struct stacks *stacks = start();

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(intern_stack(stacks, &all[i], 1, DWUNW_STATUS_ENDED), i);
	for (uint32_t i = 0; i < 5; i++)
		check_frames(stacks, i, &all[i], 1);
	finish(stacks);
}

static void deep_stacks_share_their_callers(void **state)
{
	struct dwunw_frame frames[STACK_MAX_FRAMES] = {0};
	struct stacks *stacks = start();

	(void)state;
	for (uint64_t i = 0; i < STACK_MAX_FRAMES; i++)
		frames[i].pc = 1000 + i;
	for (uint32_t i = 0; i < 20000; i++) {
		/* from anywhere in the recursion, and in turn with another thread */
		size_t from = i % 1000;
		uint32_t number;

		frames[from].pc = 1000000 + i;
		number = intern_stack(stacks, frames + from, STACK_MAX_FRAMES - from,
				      DWUNW_STATUS_ENDED);
		check_frames(stacks, number, frames + from, STACK_MAX_FRAMES - from);
		frames[from].pc = 1000 + from;
		intern_stack(stacks, frames, 1, DWUNW_STATUS_NO_CFI);
	}
	assert_int_equal(stacks->nr, 20001);
	/* one for each, those of the recursion, and that of the other thread */
	assert_in_range(dwunw_stack_limit(dw), 20000, 20000 + STACK_MAX_FRAMES + 20);
	finish(stacks);
}

#define MODEL_STACKS 3000

static void random_stacks_come_back_as_they_were(void **state)
{
	struct model {
		struct dwunw_frame frames[8];
		size_t nr;
		enum dwunw_status status;
	} *all = calloc(MODEL_STACKS, sizeof(*all));
	struct stacks *stacks = start();
	unsigned int seed = 1;

	(void)state;
	assert_non_null(all);
	for (int i = 0; i < MODEL_STACKS; i++) {
		struct model m = {.nr = (unsigned int)rand_r(&seed) % 8,
				  .status = (unsigned int)rand_r(&seed) % 2};
		size_t before = stacks->nr, number;

		for (size_t at = 0; at < m.nr; at++)
			m.frames[at].pc = (unsigned int)rand_r(&seed) % 3;
		for (number = 0; number < before; number++)
			if (!memcmp(&all[number], &m, sizeof(m)))
				break;
		assert_int_equal(intern_stack(stacks, m.frames, m.nr, m.status), number);
		assert_int_equal(stacks->nr, number == before ? before + 1 : before);
		all[number] = m;
	}
	for (uint32_t i = 0; i < stacks->nr; i++) {
		assert_int_equal(stacks->all[i].status, all[i].status);
		check_frames(stacks, i, all[i].frames, all[i].nr);
	}
	finish(stacks);
	free(all);
}

/* Read all stacks in the order @first, @first + 1 and so on, and check that each distinct frame,
 * which its pc tells, comes once, and that none is missing.  @pcs are below @nr_pcs. */
static void check_frames_new(const struct stacks *stacks, uint32_t first, size_t nr_pcs)
{
	static struct dwunw_frame frames[STACK_MAX_FRAMES];
	bool *met = calloc(dwunw_stack_limit(stacks->dw), sizeof(*met));
	unsigned int *wanted = calloc(nr_pcs, sizeof(*wanted)),
		     *come = calloc(nr_pcs, sizeof(*come));

	assert_true(met && wanted && come);
	for (uint32_t i = 0; i < stacks->nr; i++) {
		uint32_t number = (first + i) % (uint32_t)stacks->nr;
		size_t nr = stacks_frames_new(stacks, number, met, frames);

		for (size_t at = 0; at < nr; at++)
			come[frames[at].pc]++;
		assert_int_equal(stacks_frames_new(stacks, number, met, frames), 0);
		nr = stacks_frames(stacks, number, frames);
		for (size_t at = 0; at < nr; at++) {
			wanted[frames[at].pc] = 1;
			/* by now the whole stack was told of */
			assert_int_equal(come[frames[at].pc], 1);
		}
	}
	assert_memory_equal(come, wanted, nr_pcs * sizeof(*come));
	free(met);
	free(wanted);
	free(come);
}

static void frames_that_stacks_share_come_once(void **state)
{
	/* a stack, one that ends in it, one that it ends in, and one that has its end */
	static const char *const paths[] = {"abcd", "cd", "efabcd", "gcd", "hd", "ijk"};
	struct stacks *stacks = start();

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct dwunw_frame frames[8] = {0};

		for (size_t at = 0; paths[i][at]; at++)
			frames[at].pc = (uint64_t)paths[i][at];
		intern_stack(stacks, frames, strlen(paths[i]), DWUNW_STATUS_ENDED);
	}
	for (uint32_t first = 0; first < stacks->nr; first++)
		check_frames_new(stacks, first, 128);
	finish(stacks);
}

static void a_stack_without_frames_has_no_new_ones(void **state)
{
	struct dwunw_frame frame = {0};
	struct stacks *stacks = start();

	(void)state;
	intern_stack(stacks, NULL, 0, DWUNW_STATUS_NO_CFI);
	intern_stack(stacks, &frame, 1, DWUNW_STATUS_NO_CFI);
	check_frames_new(stacks, 0, 1);
	check_frames_new(stacks, 1, 1);
	finish(stacks);
}

static void a_stack_that_just_has_room_is_new_once(void **state)
{
	static struct dwunw_frame frames[STACK_MAX_FRAMES];
	struct stacks *stacks = start();

	(void)state;
	for (uint64_t i = 0; i < STACK_MAX_FRAMES; i++)
		frames[i].pc = i;
	intern_stack(stacks, frames, STACK_MAX_FRAMES, DWUNW_STATUS_ENDED);
	intern_stack(stacks, frames + 9, STACK_MAX_FRAMES - 9, DWUNW_STATUS_ENDED);
	check_frames_new(stacks, 0, STACK_MAX_FRAMES);
	check_frames_new(stacks, 1, STACK_MAX_FRAMES);
	finish(stacks);
}

/* The outermost frames of a stack with more than STACK_MAX_FRAMES have no room, but are within that
 * of a stack that begins nearer to them. */
static void what_has_no_room_in_one_stack_comes_with_another(void **state)
{
	enum { DEPTH = STACK_MAX_FRAMES + 100 };
	static struct dwunw_frame frames[DEPTH], got[STACK_MAX_FRAMES];
	struct stacks *stacks = start();
	static bool come[DEPTH];
	uint32_t numbers[2];
	bool *met;

	(void)state;
	for (uint64_t i = 0; i < DEPTH; i++)
		frames[i].pc = 1000 + i;
	numbers[0] = intern_stack(stacks, frames, DEPTH, DWUNW_STATUS_ENDED);
	numbers[1] = intern_stack(stacks, frames + 50, DEPTH - 50, DWUNW_STATUS_ENDED);
	for (int first = 0; first < 2; first++) {
		met = calloc(dwunw_stack_limit(stacks->dw), sizeof(*met));
		assert_non_null(met);
		memset(come, 0, sizeof(come));
		for (int i = 0; i < 2; i++) {
			size_t nr = stacks_frames_new(stacks, numbers[first ^ i], met, got);

			assert_true(nr <= STACK_MAX_FRAMES);
			while (nr--)
				come[got[nr].pc - 1000] = true;
		}
		for (size_t i = 0; i < DEPTH; i++)
			assert_int_equal(come[i], i < STACK_MAX_FRAMES + 50);
		free(met);
	}
	finish(stacks);
}

/* The function that was here before the hash had a key, and what makes up for it. */
static uint64_t undo_xor(uint64_t word, int shift)
{
	uint64_t from = word;

	for (int i = shift; i < 64; i += shift)
		word = from ^ (word >> shift);
	return word;
}

static uint64_t undo_splitmix(uint64_t hash)
{
	hash = undo_xor(hash, 31) * 0x319642b2d24d8ec3;
	hash = undo_xor(hash, 27) * 0x96de1b173f119089;
	return undo_xor(hash, 30) - 0x9e3779b97f4a7c15;
}

/* Hash many words that were made alike in some way: they must spread over the slots of a table. */
static void check_spread(uint64_t (*hash)(uint64_t i))
{
	enum { SLOTS = 1 << 16 };
	static uint16_t used[SLOTS];
	unsigned int empty = 0;

	memset(used, 0, sizeof(used));
	for (uint64_t i = 0; i < 4 * SLOTS; i++)
		used[hash(i) % SLOTS]++;
	for (int i = 0; i < SLOTS; i++) {
		assert_true(used[i] < 40);
		empty += !used[i];
	}
	/* chance leaves exp(-4) of them empty */
	assert_in_range(empty, SLOTS / 80, SLOTS / 40);
}

static uint64_t crafted(uint64_t i)
{
	return hash_word(0, undo_splitmix(i << 32));
}

static uint64_t addresses(uint64_t i)
{
	return hash_word(0, 0x7f0000000010 + i * 64);
}

static uint64_t equal_sums(uint64_t i)
{
	return hash_word(i, i ^ 0x1000);
}

static uint64_t high_bits(uint64_t i)
{
	return hash_word(i << 40, 1);
}

static void no_trace_can_choose_its_hashes(void **state)
{
	(void)state;
	check_spread(crafted);
	check_spread(addresses);
	check_spread(equal_sums);
	check_spread(high_bits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_is_its_frames_and_its_status),
		cmocka_unit_test(every_part_of_a_frame_counts),
		cmocka_unit_test(deep_stacks_share_their_callers),
		cmocka_unit_test(random_stacks_come_back_as_they_were),
		cmocka_unit_test(frames_that_stacks_share_come_once),
		cmocka_unit_test(a_stack_without_frames_has_no_new_ones),
		cmocka_unit_test(a_stack_that_just_has_room_is_new_once),
		cmocka_unit_test(what_has_no_room_in_one_stack_comes_with_another),
		cmocka_unit_test(no_trace_can_choose_its_hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
