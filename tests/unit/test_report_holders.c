/* test_report_holders.c - what each root and block holds alone, in random heaps, is what is not
 * reached without it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/reach/graph/holders.h"
#include "report/reach/graph/leaders.h"

#define BASE   UINT64_C(0x7f0000000000)
#define DATA   UINT64_C(0x500000000000) /* roots of 8 words each */
#define STACK  UINT64_C(0x7ffe00000000)
#define BLOCKS 60
#define WORDS  160
#define ROOTS  6 /* the last one is a stack */
#define ROUNDS 1500
#define SIZE   64

static uint64_t seed = 3;

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % limit;
}

struct heap {
	struct reach_block blocks[BLOCKS];
	uint32_t nr;
	struct mlk_pointer words[WORDS];
	size_t nr_words;
};

static int by_address(const void *a, const void *b)
{
	const struct mlk_pointer *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* One of @most is in a root's memory, and one in a stack. */
static uint64_t random_place(const struct heap *h, uint32_t most)
{
	uint32_t kind = random_below(most);

	if (!kind)
		return DATA + random_below(8 * (ROOTS - 1)) * UINT64_C(8);
	if (kind == 1)
		return STACK + random_below(8) * UINT64_C(8);
	return BASE + random_below(h->nr * SIZE / 8) * UINT64_C(8);
}

static void make_heap(struct heap *h)
{
	uint32_t most = 3 + random_below(60);
	size_t kept = 0;

	h->nr = 1 + random_below(BLOCKS);
	for (uint32_t i = 0; i < h->nr; i++)
		h->blocks[i] = (struct reach_block){BASE + i * SIZE, BASE + (i + 1) * SIZE, 1};
	h->nr_words = random_below(WORDS);
	for (size_t i = 0; i < h->nr_words; i++)
		h->words[i] = (struct mlk_pointer){random_place(h, most),
						   BASE + random_below(h->nr) * SIZE +
							   (random_below(4) ? 0 : 16)};
	qsort(h->words, h->nr_words, sizeof(h->words[0]), by_address);
	for (size_t i = 0; i < h->nr_words; i++)
		if (!kept || h->words[kept - 1].address != h->words[i].address)
			h->words[kept++] = h->words[i];
	h->nr_words = kept;
}

static uint32_t number_of_root(void *arg, enum reach_root kind, uint64_t where, bool stale)
{
	(void)arg;
	assert_int_equal(kind, REACH_ROOT_WORD);
	assert_false(stale);
	return where >= STACK ? ROOTS - 1 : (uint32_t)((where - DATA) / 64);
}

static bool is_stack(const void *arg, uint32_t root)
{
	(void)arg;
	return root == ROOTS - 1;
}

static uint32_t node_at(const struct heap *h, uint64_t address)
{
	return address >= BASE && address < BASE + h->nr * SIZE
		       ? (uint32_t)((address - BASE) / SIZE)
		       : h->nr + number_of_root(NULL, 0, address, 0);
}

/* What a word makes of a block, if @class is that of where it is. */
static uint8_t class_by(const struct mlk_pointer *word, uint8_t class)
{
	return word->value % SIZE && class > HOLDER_OF_POSSIBLE ? HOLDER_OF_POSSIBLE : class;
}

/* The class of each node by a plain search. */
static void search(const struct heap *h, uint8_t *classes)
{
	bool changed = true;

	memset(classes, 0, BLOCKS + ROOTS);
	for (uint32_t i = 0; i < ROOTS; i++)
		classes[h->nr + i] = is_stack(NULL, i) ? HOLDER_OF_STACK : HOLDER_OF_HELD;
	while (changed) {
		changed = false;
		for (size_t i = 0; i < h->nr_words; i++) {
			uint32_t from = node_at(h, h->words[i].address);
			uint32_t to = node_at(h, h->words[i].value);
			uint8_t class = class_by(&h->words[i], classes[from]);

			if (to != from && class > classes[to]) {
				classes[to] = class;
				changed = true;
			}
		}
	}
}

static void find(const struct heap *h, struct holders *found)
{
	static const struct mlk_range ranges[] = {
		{.start = DATA, .end = DATA + 4096, .path = "/x"},
		{.start = BASE, .end = BASE + (UINT64_C(1) << 30), .path = "[heap]"},
		{.start = STACK, .end = STACK + 4096, .path = "[stack]"}};
	static const struct mlk_pass pass = {.ranges = ranges, .nr_ranges = 3};
	const struct reach_roots roots = {number_of_root, is_stack, NULL};
	struct block_index index;
	struct reach_world world = {.index = &index, .roots = &roots};
	struct holders_input input = {.blocks = h->blocks, .nr_roots = ROOTS, .roots = &roots};
	uint8_t classes[BLOCKS] = {0};
	uint32_t to[WORDS];

	assert_int_equal(block_index_make(&index, h->blocks, h->nr), 0);
	assert_int_equal(reach_pass_new(&input.pass, &world, &pass), 0);
	reach_world_find(&world, h->words, h->nr_words, to);
	assert_int_equal(reach_pass_words(input.pass, h->words, to, h->nr_words), 0);
	assert_int_equal(reach_pass_judge(input.pass, classes), 0);
	input.final = classes;
	assert_int_equal(holders_find(found, &input), 0);
	reach_pass_free(input.pass);
	block_index_release(&index);
}

/* Is @node on the way up from @block? */
static bool is_above(const struct holders *h, uint32_t block, uint32_t node)
{
	while (block != node && block != HOLDERS_NONE)
		block = h->idom[block];
	return block == node;
}

/* Which blocks are reached without the node @without, by words that make them as well held as they
 * are. */
static void reach_without(const struct heap *h, const uint8_t *classes, uint32_t without,
			  bool *reached)
{
	bool changed = true;

	for (uint32_t i = 0; i < BLOCKS + ROOTS; i++)
		reached[i] = i >= h->nr && i != without;
	while (changed) {
		changed = false;
		for (size_t i = 0; i < h->nr_words; i++) {
			uint32_t from = node_at(h, h->words[i].address);
			uint32_t to = node_at(h, h->words[i].value);

			if (reached[from] && !reached[to] && to != without &&
			    class_by(&h->words[i], classes[from]) == classes[to])
				reached[to] = changed = true;
		}
	}
}

static void what_a_node_holds_alone_is_not_reached_without_it(void **state)
{
	static struct heap h;
	size_t held_alone = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		uint8_t classes[BLOCKS + ROOTS];
		bool reached[BLOCKS + ROOTS];
		struct holders found;

		make_heap(&h);
		find(&h, &found);
		search(&h, classes);
		assert_memory_equal(found.classes, classes, h.nr);
		for (uint32_t node = 0; node < h.nr + ROOTS; node++) {
			uint64_t bytes = node < h.nr ? SIZE : 0;

			if (node < h.nr && classes[node] == HOLDER_OF_LOST)
				continue;
			reach_without(&h, classes, node, reached);
			for (uint32_t i = 0; i < h.nr; i++) {
				if (i == node || classes[i] == HOLDER_OF_LOST)
					continue;
				assert_int_equal(is_above(&found, i, node), !reached[i]);
				bytes += reached[i] ? 0 : SIZE;
				held_alone += !reached[i];
			}
			assert_int_equal(found.retained[node].bytes, bytes);
		}
		assert_int_equal(found.retained[holders_all(&found)].bytes, h.nr * SIZE);
		holders_release(&found);
	}
	assert_true(held_alone > 10000);
}

/* The number of words on the shortest way to each block, by which it is as well held as it is. */
static void plain_ways(const struct heap *h, const uint8_t *classes, uint32_t *length)
{
	bool changed = true;

	memset(length, 0xff, (BLOCKS + ROOTS) * sizeof(*length));
	for (uint32_t i = 0; i < ROOTS; i++)
		length[h->nr + i] = 0;
	while (changed) {
		changed = false;
		for (size_t i = 0; i < h->nr_words; i++) {
			uint32_t from = node_at(h, h->words[i].address);
			uint32_t to = node_at(h, h->words[i].value);
			uint8_t class = class_by(&h->words[i], classes[from]);

			if (from != to && class && class == classes[to] &&
			    length[from] != UINT32_MAX && length[from] + 1 < length[to]) {
				length[to] = length[from] + 1;
				changed = true;
			}
		}
	}
}

static void ways_are_the_shortest(void **state)
{
	static struct heap h;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		uint8_t classes[BLOCKS + ROOTS];
		uint32_t length[BLOCKS + ROOTS];
		struct holders found;

		make_heap(&h);
		find(&h, &found);
		search(&h, classes);
		plain_ways(&h, classes, length);
		assert_int_equal(found.nr_order, h.nr);
		for (uint32_t i = 0; i < h.nr; i++) {
			uint32_t steps = 0, at = i;

			for (; at < h.nr; at = found.parent[at])
				steps++;
			if (classes[i])
				assert_int_equal(steps, length[i]);
			else
				assert_int_equal(at, holders_lost(&found));
		}
		holders_release(&found);
	}
}

/* Which blocks are reached from @from by words of lost blocks. */
static void lost_from(const struct heap *h, const uint8_t *classes, uint32_t from, bool *reached)
{
	bool changed = true;

	memset(reached, 0, BLOCKS * sizeof(*reached));
	reached[from] = true;
	while (changed) {
		changed = false;
		for (size_t i = 0; i < h->nr_words; i++) {
			uint32_t at = node_at(h, h->words[i].address);
			uint32_t to = node_at(h, h->words[i].value);

			if (at < h->nr && reached[at] && !classes[at] && !classes[to] &&
			    !reached[to])
				reached[to] = changed = true;
		}
	}
}

/* A leader is reached from no lost block that it does not reach; and all are led. */
static void leaders_are_at_the_heads(void **state)
{
	static struct heap h;
	size_t cycles = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		uint8_t classes[BLOCKS + ROOTS];
		bool reached[BLOCKS][BLOCKS];
		struct holders found;

		make_heap(&h);
		find(&h, &found);
		search(&h, classes);
		for (uint32_t i = 0; i < h.nr; i++)
			lost_from(&h, classes, i, reached[i]);
		for (uint32_t i = 0; i < h.nr; i++) {
			if (classes[i] || found.parent[i] != holders_lost(&found))
				continue;
			for (uint32_t k = 0; k < h.nr; k++) {
				if (!classes[k] && reached[k][i] && k != i) {
					assert_true(reached[i][k]);
					cycles++;
				}
			}
		}
		holders_release(&found);
	}
	assert_true(cycles > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_node_holds_alone_is_not_reached_without_it),
		cmocka_unit_test(ways_are_the_shortest),
		cmocka_unit_test(leaders_are_at_the_heads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
