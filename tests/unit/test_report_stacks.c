/* test_report_stacks.c - each stack is stored once, and what stacks have in common, too */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/hash_index.h"
#include "report/stacks.h"

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

static uint32_t intern(struct stacks *stacks, const struct dwunw_frame *frames, size_t nr,
		       enum dwunw_status status)
{
	uint32_t number = UINT32_MAX, id = 0;

	assert_int_equal(dwunw_stack_intern(dw, frames, nr, status, &id), 0);
	assert_int_not_equal(id, 0);
	assert_true(id < dwunw_stack_limit(dw));
	assert_int_equal(stacks_add(stacks, id, 0, &number), 0);
	assert_true(number < stacks_nr(stacks));
	return number;
}

/* The last frame of an incomplete stack comes back with the flag that says so. */
static void check_frames(const struct stacks *stacks, uint32_t number,
			 const struct dwunw_frame *frames, size_t nr)
{
	static struct dwunw_frame mine[STACK_MAX_FRAMES];
	uint32_t id = stacks_get(stacks, number)->id;

	assert_int_equal(stacks_frames(stacks, number, mine), nr);
	if (nr && stacks_get(stacks, number)->status != DWUNW_STATUS_ENDED) {
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
	assert_int_equal(intern(stacks, frames, 3, DWUNW_STATUS_ENDED), 0);
	assert_int_equal(intern(stacks, frames, 3, DWUNW_STATUS_NO_CFI), 1);
	assert_int_equal(intern(stacks, frames, 2, DWUNW_STATUS_ENDED), 2);
	assert_int_equal(intern(stacks, frames + 1, 2, DWUNW_STATUS_ENDED), 3);
	assert_int_equal(intern(stacks, frames, 0, DWUNW_STATUS_NO_CFI), 4);
	assert_int_equal(intern(stacks, frames, 3, DWUNW_STATUS_ENDED), 0);
	assert_int_equal(intern(stacks, frames + 1, 2, DWUNW_STATUS_ENDED), 3);
	assert_int_equal(intern(stacks, NULL, 0, DWUNW_STATUS_NO_CFI), 4);
	check_frames(stacks, 0, frames, 3);
	check_frames(stacks, 1, frames, 3);
	check_frames(stacks, 2, frames, 2);
	check_frames(stacks, 3, frames + 1, 2);
	check_frames(stacks, 4, frames, 0);
	assert_int_equal(stacks_get(stacks, 1)->status, DWUNW_STATUS_NO_CFI);
	finish(stacks);
}

static void every_part_of_a_frame_counts(void **state)
{
	const struct dwunw_frame all[] = {
		{1, 1, 0, 0}, {2, 1, 0, 0}, {1, 2, 0, 0}, {1, 1, 1, 0}, {1, 1, 0, 1}};
	struct stacks *stacks = start();

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(intern(stacks, &all[i], 1, DWUNW_STATUS_ENDED), i);
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
		number = intern(stacks, frames + from, STACK_MAX_FRAMES - from, DWUNW_STATUS_ENDED);
		check_frames(stacks, number, frames + from, STACK_MAX_FRAMES - from);
		frames[from].pc = 1000 + from;
		intern(stacks, frames, 1, DWUNW_STATUS_NO_CFI);
	}
	assert_int_equal(stacks_nr(stacks), 20001);
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
		size_t before = stacks_nr(stacks), number;

		for (size_t at = 0; at < m.nr; at++)
			m.frames[at].pc = (unsigned int)rand_r(&seed) % 3;
		for (number = 0; number < before; number++)
			if (!memcmp(&all[number], &m, sizeof(m)))
				break;
		assert_int_equal(intern(stacks, m.frames, m.nr, m.status), number);
		assert_int_equal(stacks_nr(stacks), number == before ? before + 1 : before);
		all[number] = m;
	}
	for (uint32_t i = 0; i < stacks_nr(stacks); i++) {
		assert_int_equal(stacks_get(stacks, i)->status, all[i].status);
		check_frames(stacks, i, all[i].frames, all[i].nr);
	}
	finish(stacks);
	free(all);
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
		cmocka_unit_test(no_trace_can_choose_its_hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
