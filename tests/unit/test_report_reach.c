/* test_report_reach.c - what a pass says of random blocks and words is what a plain search says */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/reach/graph/freed.h"
#include "report/reach/graph/missed.h"
#include "report/reach/graph/reach_pass.h"

#define BASE   UINT64_C(0x7f0000000000)
#define ROOTS  UINT64_C(0x500000000000) /* data of a program */
#define STACK  UINT64_C(0x7ffe00000000)
#define BLOCKS 400
#define WORDS  1200
#define ROUNDS 300

static uint64_t seed = 1;

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % limit;
}

/* A heap of blocks of all sizes, with gaps; and words in them, in data, on a stack and in gaps. */
struct heap {
	bool ran; /* the thread: its stack pointer was not always that one */
	struct reach_block blocks[BLOCKS];
	size_t nr;
	struct mlk_pointer words[WORDS];
	size_t nr_words;
	struct reach_area freed[BLOCKS];
	size_t nr_freed;
	struct reach_area chosen[2]; /* by the user, as roots */
	size_t nr_chosen;
};

static int by_address(const void *a, const void *b)
{
	const struct mlk_pointer *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static void make_blocks(struct heap *h)
{
	uint64_t at = BASE;

	h->nr = 1 + random_below(BLOCKS);
	for (size_t i = 0; i < h->nr; i++) {
		uint32_t kind = random_below(20);
		uint64_t size = kind ? 8 * random_below(40) : 8 * random_below(40000);
		uint64_t gap = 16 + 8 * random_below(20);

		if (random_below(2) && h->nr_freed < BLOCKS)
			h->freed[h->nr_freed++] = (struct reach_area){at, at + gap};
		at += gap;
		h->blocks[i] = (struct reach_block){at, at + size, 1};
		at += size;
	}
}

static uint64_t random_target(const struct heap *h)
{
	const struct reach_block *b = &h->blocks[random_below((uint32_t)h->nr)];

	switch (random_below(8)) {
	case 0:
		return b->end; /* just behind it */
	case 1:
		return b->start - 1;
	case 2:
	case 3:
		return b->start +
		       (b->end > b->start ? random_below((uint32_t)(b->end - b->start)) : 0);
	default:
		return b->start;
	}
}

static uint64_t random_place(const struct heap *h)
{
	uint64_t all = h->blocks[h->nr - 1].end - BASE;

	switch (random_below(12)) {
	case 0:
		return ROOTS + 8 * (uint64_t)random_below(512);
	case 1:
		return STACK + 8 * (uint64_t)random_below(512);
	default:
		return BASE + random_below((uint32_t)(all / 8 + 1)) * UINT64_C(8);
	}
}

static void make_words(struct heap *h)
{
	size_t kept = 0;

	h->nr_words = random_below(WORDS);
	for (size_t i = 0; i < h->nr_words; i++)
		h->words[i] = (struct mlk_pointer){random_place(h), random_target(h)};
	qsort(h->words, h->nr_words, sizeof(h->words[0]), by_address);
	for (size_t i = 0; i < h->nr_words; i++)
		if (!kept || h->words[kept - 1].address != h->words[i].address)
			h->words[kept++] = h->words[i];
	h->nr_words = kept;
}

/* The plain search: each block, one after the other. */
static size_t block_at(const struct heap *h, uint64_t address)
{
	for (size_t i = 0; i < h->nr; i++)
		if (address >= h->blocks[i].start &&
		    (address < h->blocks[i].end || address == h->blocks[i].start))
			return i;
	return SIZE_MAX;
}

/* Is a part of @word behind the block that it begins in? */
static bool is_cut(const struct heap *h, const struct mlk_pointer *word)
{
	size_t from = block_at(h, word->address);

	return from != SIZE_MAX && word->address + sizeof(word->value) > h->blocks[from].end;
}

/* Is @word the allocator's, in memory that was freed: does it point to the chunk behind a block? */
static bool is_allocators(const struct heap *h, const struct mlk_pointer *word, size_t to)
{
	const struct reach_block *b = &h->blocks[to];

	for (size_t i = 0; i < h->nr_freed; i++)
		if (word->address >= h->freed[i].start && word->address < h->freed[i].end)
			return word->value != b->start && word->value % 16 == 0 &&
			       word->value + 8 >= b->end;
	return false;
}

#define SP (STACK + 2048)

/* The class that a word outside of blocks gives: that of a root, or of what is not read any more.
 */
static int class_of_place(const struct heap *h, uint64_t address)
{
	for (size_t i = 0; i < h->nr_freed; i++)
		if (address >= h->freed[i].start && address < h->freed[i].end)
			return REACH_STALE;
	return !h->ran && address >= STACK && address < SP - 128 ? REACH_STALE : REACH_HELD;
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

static bool is_chosen(const struct heap *h, uint64_t address)
{
	for (size_t i = 0; i < h->nr_chosen; i++)
		if (address >= h->chosen[i].start && address < h->chosen[i].end)
			return true;
	return false;
}

/* Some memory of the heap, anywhere. */
static void choose_roots(struct heap *h)
{
	uint64_t all = h->blocks[h->nr - 1].end - BASE, at = BASE;

	h->nr_chosen = random_below(3);
	for (size_t i = 0; i < h->nr_chosen; i++) {
		at += 8 * (uint64_t)random_below((uint32_t)(all / 16 + 1));
		h->chosen[i].start = at;
		at += 8 + random_below((uint32_t)(all / 40 + 1));
		h->chosen[i].end = at;
	}
}

/* What it gives to the block it points to: the weakest of the way there. */
static int strength(const struct heap *h, const struct mlk_pointer *word, const uint8_t *classes,
		    bool starts_only)
{
	size_t from = block_at(h, word->address), to = block_at(h, word->value);
	int class = is_chosen(h, word->address) ? REACH_HELD
		    : from == SIZE_MAX		? class_of_place(h, word->address)
						: classes[from];

	if (word->value == h->blocks[to].start)
		return class;
	return starts_only ? REACH_LOST : least(class, REACH_POSSIBLE);
}

/* Again and again, until nothing changes. */
static void search(const struct heap *h, bool starts_only, uint8_t *classes)
{
	bool changed = true;

	memset(classes, 0, h->nr);
	while (changed) {
		changed = false;
		for (size_t i = 0; i < h->nr_words; i++) {
			size_t to = block_at(h, h->words[i].value);
			int class;

			if (to == SIZE_MAX ||
			    (!is_chosen(h, h->words[i].address) &&
			     (is_cut(h, &h->words[i]) || is_allocators(h, &h->words[i], to))))
				continue;
			class = strength(h, &h->words[i], classes, starts_only);
			if (class > classes[to]) {
				classes[to] = (uint8_t) class;
				changed = true;
			}
		}
	}
}

/* Another pass of the same heap.  With @missed: raise @classes by what passes say together. */
static void judge_on(const struct heap *h, bool starts_only, uint8_t *classes, bool *pointed,
		     struct missed *missed)
{
	static const struct mlk_range ranges[] = {
		{.start = ROOTS, .end = ROOTS + 4096, .path = "/x"},
		{.start = BASE, .end = BASE + (UINT64_C(1) << 40), .path = ""},
		{.start = STACK, .end = STACK + 4096, .path = "[stack]"}};
	const struct mlk_reach_thread thread = {.tid = 1,
						.how = h->ran ? MLK_REACH_SAMPLED
							      : MLK_REACH_WAITING,
						.known = 1 << 7,
						.regs = {[7] = SP}};
	const struct mlk_pass pass = {
		.ranges = ranges, .nr_ranges = 3, .threads = &thread, .nr_threads = 1};
	struct block_index index;
	struct reach_world world = {.index = &index,
				    .freed = h->freed,
				    .nr_freed = h->nr_freed,
				    .chosen = h->chosen,
				    .nr_chosen = h->nr_chosen,
				    .starts_only = starts_only};
	const size_t half = h->nr_words / 2;
	uint32_t to[WORDS];
	struct reach_pass *p;

	assert_int_equal(block_index_make(&index, h->blocks, h->nr), 0);
	assert_int_equal(reach_pass_new(&p, &world, &pass), 0);
	/* in two parts, as they come in chunks */
	reach_world_find(&world, h->words, h->nr_words, to);
	assert_int_equal(reach_pass_words(p, h->words, to, half), 0);
	assert_int_equal(reach_pass_words(p, h->words + half, to + half, h->nr_words - half), 0);
	assert_int_equal(reach_pass_judge(p, classes), 0);
	if (missed)
		assert_int_equal(missed_find(missed, p, classes, true), 0);
	reach_pass_lost_with(p, classes, pointed);
	reach_pass_free(p);
	block_index_release(&index);
}

static void judge(const struct heap *h, bool starts_only, uint8_t *classes, bool *pointed)
{
	memset(classes, 0, h->nr);
	judge_on(h, starts_only, classes, pointed, NULL);
}

static void classes_are_those_of_a_plain_search(void **state)
{
	static struct heap h;
	size_t seen[REACH_CLASSES] = {0};

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		uint8_t expected[BLOCKS], got[BLOCKS];
		bool pointed[BLOCKS] = {0};
		bool starts_only = round % 2;

		memset(&h, 0, sizeof(h));
		h.ran = round % 3 == 0;
		make_blocks(&h);
		make_words(&h);
		choose_roots(&h);
		search(&h, starts_only, expected);
		judge(&h, starts_only, got, pointed);
		assert_memory_equal(got, expected, h.nr);
		for (size_t i = 0; i < h.nr; i++)
			seen[got[i]]++;
		for (size_t i = 0; i < h.nr; i++) {
			bool with = false;

			for (size_t w = 0; w < h.nr_words; w++) {
				size_t from = block_at(&h, h.words[w].address);

				with |= block_at(&h, h.words[w].value) == i && from != SIZE_MAX &&
					from != i && got[from] == REACH_LOST &&
					!is_cut(&h, &h.words[w]) &&
					(!starts_only || h.words[w].value == h.blocks[i].start);
			}
			if (got[i] == REACH_LOST)
				assert_int_equal(pointed[i], with);
		}
	}
	/* none of them is rare */
	for (int class = 0; class < REACH_CLASSES; class ++)
		assert_true(class == REACH_STACK ? !seen[class] : seen[class] > 500);
}

/* Leave out some words of @all; those that stay are marked in @seen, too. */
static void miss_some(struct heap *h, const struct heap *all, bool *seen)
{
	*h = *all;
	h->nr_words = 0;
	for (size_t i = 0; i < all->nr_words; i++) {
		if (!random_below(3))
			continue;
		h->words[h->nr_words++] = all->words[i];
		seen[i] = true;
	}
}

/* Of random words each pass misses others: lost is what no words of all passes lead to. */
static void what_passes_miss_they_find_together(void **state)
{
	static struct heap all, one;
	size_t apart = 0, lost = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		uint8_t expected[BLOCKS], got[BLOCKS] = {0}, best[BLOCKS] = {0}, own[BLOCKS];
		bool seen[WORDS] = {0}, pointed[BLOCKS] = {0}, starts_only = round % 2;
		struct missed missed = {0};
		size_t kept = 0;

		memset(&all, 0, sizeof(all));
		make_blocks(&all);
		make_words(&all);
		choose_roots(&all);
		for (int pass = 0; pass < 3; pass++) {
			miss_some(&one, &all, seen);
			search(&one, starts_only, own);
			judge_on(&one, starts_only, got, pointed, &missed);
			for (size_t i = 0; i < all.nr; i++)
				best[i] = best[i] > own[i] ? best[i] : own[i];
		}
		missed_release(&missed);
		for (size_t i = 0; i < all.nr_words; i++)
			if (seen[i])
				all.words[kept++] = all.words[i];
		all.nr_words = kept;
		search(&all, starts_only, expected);
		for (size_t i = 0; i < all.nr; i++) {
			assert_int_equal(got[i] == REACH_LOST, expected[i] == REACH_LOST);
			assert_true(got[i] >= best[i] && got[i] <= expected[i]);
			apart += best[i] == REACH_LOST && got[i] != REACH_LOST;
			lost += got[i] == REACH_LOST;
		}
	}
	assert_true(apart > 500 && lost > 500);
}

static void what_is_free_is_less_what_lives(void **state)
{
	static const struct reach_block live[] = {{0x1010, 0x1020, 1}, {0x2000, 0x3000, 1}};
	struct reach_area *areas;
	struct freed *f;
	size_t nr;

	(void)state;
	assert_int_equal(freed_new(&f), 0);
	assert_int_equal(freed_add(f, 0x2100, 0x2200), 0); /* lives again, in another block */
	assert_int_equal(freed_add(f, 0x1000, 0x1040), 0);
	assert_int_equal(freed_add(f, 0x1030, 0x1080), 0); /* overlaps */
	assert_int_equal(freed_add(f, 0x4000, 0x4010), 0);
	freed_drop(f, 0x4000);
	assert_int_equal(freed_areas(f, live, 2, &areas, &nr), 0);
	assert_int_equal(nr, 2);
	assert_int_equal(areas[0].start, 0x1000);
	assert_int_equal(areas[0].end, 0x1010);
	assert_int_equal(areas[1].start, 0x1020);
	assert_int_equal(areas[1].end, 0x1080);
	free(areas);
	freed_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_are_those_of_a_plain_search),
		cmocka_unit_test(what_passes_miss_they_find_together),
		cmocka_unit_test(what_is_free_is_less_what_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
