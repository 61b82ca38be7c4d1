/* reach_graph.c - a random graph of blocks, which two threads change while somebody looks
 *
 * usage: reach_graph BLOCKS MOVES SEED [wait]
 *
 * Each block that is held has one pointer to it that counts, in a block of a lower number or in a
 * root, and some have others, from anywhere.  Two threads move MOVES of the pointers that count in
 * all a second, to any block of a lower number, also of the other's: so nothing comes loose.  Of 16
 * moves one frees a block and allocates another one, and now and then a tree of blocks is lost.
 *
 * Of BLOCKS a hundredth is lost before "ready", in small graphs, and as many come loose meanwhile.
 * It ends when stdin ends, goes through its graph, and says
 *
 *	held N lost N loosened N moves N milliseconds N
 *
 * or "wrong", if its graph is not what its threads thought.  Which is which the functions tell
 * that allocate, and the first word of a block.  Addresses are kept mangled, so only the graph has
 * pointers.  With a fourth argument it waits for a byte before it allocates.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "heap_scrub.h"

enum {
	THREADS = 2,
	ROOTS = 64,	/* held from the beginning: blocks 0 to ROOTS - 1 have a root each */
	SLOTS = 4,	/* pointers in a block */
	LOCKS = 1024,	/* each for some of the slots and the numbers beside them */
	TREE = 20,	/* blocks that come loose together, or are lost together */
	CHURN = 1000,	/* blocks of a thread that come and go */
	BATCH = 48,	/* moves between two looks at the clock */
	CHURN_EACH = 16, /* moves for one block that goes */
	PAUSE_NS = 1000000,
	LOOSEN_NS = 100000000, /* between two trees of a thread that come loose */
};

#define MANGLE UINT64_C(0xa5a5000000000000)
#define NONE   0u
#define WEAK   0x80000000u /* beside a slot: the pointer is not the one that counts */
#define CHURNED (WEAK - 1) /* it is to a block without a number, which nobody moves */

/* What the first word of a block points to. */
char held_mark[] = "held", lost_mark[] = "lost", loose_mark[] = "loose", churn_mark[] = "churn";

struct block {
	char *mark;
	struct block *slots[SLOTS];
	uint64_t rest[];
};

static struct block *volatile roots[ROOTS]; /* which hold all the rest */
static uint64_t *blocks;	   /* addresses, mangled; the held ones before the loose ones */
static uint32_t *slot_of;	   /* of each: the slot with the pointer that counts, or NONE */
static uint32_t *within;	   /* of each slot: the number of the block it points to, and WEAK */
static unsigned long nr_held, nr_loose, nr_lost, next_tree;
static bool *loosened; /* of each tree */
static pthread_mutex_t locks[LOCKS]; /* all zero is their beginning */
static uint64_t pace_ns; /* of a thread's batch; 0: as fast as it can */
static volatile bool over;
static unsigned long done[THREADS];

static uint64_t any(uint64_t *seed, uint64_t below)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (*seed * UINT64_C(2685821657736338717) >> 20) % below;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct block *at(uint64_t number)
{
	return (struct block *)(blocks[number] ^ MANGLE);
}

/* Slots have numbers: those of block b begin at SLOTS * b, behind one that is NONE. */
static uint32_t slot_number(uint64_t block, uint64_t slot)
{
	return (uint32_t)(block * SLOTS + slot + 1);
}

static uint32_t holder(uint32_t slot)
{
	return (slot - 1) / SLOTS;
}

static struct block **place(uint32_t slot)
{
	return &at(holder(slot))->slots[(slot - 1) % SLOTS];
}

static struct block *new_block(char *mark, uint64_t *r)
{
	struct block *b = calloc(1, sizeof(*b) + 8 * any(r, 40));

	if (!b)
		_exit(98);
	b->mark = mark;
	keep(b);
	return b;
}

#define GET(name, mark)                                                                            \
	FRAME struct block *name(uint64_t *r)                                                 \
	{                                                                                          \
		struct block *b = new_block(mark, r);                                              \
                                                                                                   \
		AFTER_CALL();                                                                      \
		return b;                                                                          \
	}

GET(get_held, held_mark)
GET(get_loose, loose_mark)
GET(get_churned, churn_mark)
GET(get_lost, lost_mark)

/* Small graphs, with circles: each block is pointed to but some first ones, and points to held
 * ones, too. */
static FRAME void lose(uint64_t *r)
{
	for (unsigned long made = 0; made < nr_lost;) {
		struct block *all[TREE];
		int nr = (int)any(r, TREE) + 1;

		if (nr_lost - made < (unsigned long)nr)
			nr = (int)(nr_lost - made);
		for (int i = 0; i < nr; i++)
			all[i] = get_lost(r);
		for (int i = 1; i < nr; i++)
			all[any(r, (uint64_t)i)]->slots[any(r, SLOTS)] = all[i];
		if (any(r, 2))
			all[any(r, (uint64_t)nr)]->slots[any(r, SLOTS)] = all[0];
		all[any(r, (uint64_t)nr)]->slots[any(r, SLOTS)] = at(any(r, nr_held));
		made += (unsigned long)nr;
	}
}

static void put(uint32_t slot, uint32_t number, uint32_t weak)
{
	*place(slot) = at(number);
	within[slot] = (number + 1) | weak;
	if (!weak)
		slot_of[number] = slot;
}

static uint32_t free_slot(uint64_t *r, uint64_t from, uint64_t to)
{
	for (int i = 0; i < 1000; i++) {
		uint32_t slot = slot_number(from + any(r, to - from), any(r, SLOTS));

		if (within[slot] == NONE)
			return slot;
	}
	return NONE;
}

/* Every held block but the first ones gets a pointer from a lower one; so do trees, whose other
 * blocks hang in them.  Then each fourth gets another one from anywhere. */
static void link_all(uint64_t *r)
{
	for (uint32_t i = 0; i < nr_held + nr_loose; i++) {
		bool hangs = i >= nr_held && (i - nr_held) % TREE;
		uint64_t from = hangs ? i - (i - nr_held) % TREE : 0;
		uint32_t slot;

		if (i < ROOTS) {
			roots[i] = at(i);
			continue;
		}
		slot = free_slot(r, from, i < nr_held || hangs ? i : nr_held);
		if (slot == NONE)
			_exit(97);
		put(slot, i, 0);
	}
	for (uint32_t i = 0; i < nr_held / 4; i++) {
		uint32_t slot = free_slot(r, 0, nr_held + nr_loose);

		if (slot != NONE)
			put(slot, (uint32_t)any(r, nr_held), WEAK);
	}
}

static void lock_both(uint32_t a, uint32_t b)
{
	uint32_t first = a % LOCKS < b % LOCKS ? a % LOCKS : b % LOCKS;
	uint32_t second = a % LOCKS + b % LOCKS - first;

	pthread_mutex_lock(&locks[first]);
	if (second != first)
		pthread_mutex_lock(&locks[second]);
}

static void unlock_both(uint32_t a, uint32_t b)
{
	pthread_mutex_unlock(&locks[a % LOCKS]);
	if (a % LOCKS != b % LOCKS)
		pthread_mutex_unlock(&locks[b % LOCKS]);
}

/* Move the pointer that counts of block @number to slot @to of a lower one: what is in that comes
 * here, if it may.  Returns whether it did. */
static bool move_to(uint32_t number, uint32_t to)
{
	uint32_t from = slot_of[number], other;
	bool moves;

	if (from == NONE || from == to)
		return false;
	lock_both(from, to);
	other = within[to] & ~WEAK;
	moves = slot_of[number] == from && other != CHURNED &&
		(!other || within[to] & WEAK || holder(from) < other - 1) &&
		/* not into a tree, which may come loose */
		(!other || other - 1 < nr_held || holder(from) < nr_held);
	if (moves) {
		struct block *is = *place(from), *was = *place(to);
		uint32_t beside = within[to];

		*place(to) = is;
		*place(from) = was;
		within[to] = within[from];
		within[from] = beside;
		slot_of[number] = to;
		if (beside && !(beside & WEAK))
			slot_of[beside - 1] = from;
	}
	unlock_both(from, to);
	return moves;
}

/* A thread's own blocks: where the pointer to each is. */
struct churn {
	uint64_t r;
	uint32_t slots[CHURN];
	unsigned int next;
};

/* The oldest goes, and another one comes. */
static void churn(struct churn *c)
{
	uint32_t *mine = &c->slots[c->next++ % CHURN], slot = *mine;
	struct block *b;

	if (slot != NONE) {
		pthread_mutex_lock(&locks[slot % LOCKS]);
		b = *place(slot);
		*place(slot) = NULL;
		within[slot] = NONE;
		pthread_mutex_unlock(&locks[slot % LOCKS]);
		if (any(&c->r, 64))
			free(b);
	}
	b = get_churned(&c->r);
	slot = slot_number(any(&c->r, nr_held), any(&c->r, SLOTS));
	b->slots[0] = at(any(&c->r, nr_held));
	pthread_mutex_lock(&locks[slot % LOCKS]);
	*mine = within[slot] == NONE ? slot : NONE;
	if (*mine != NONE) {
		*place(slot) = b;
		within[slot] = CHURNED;
	}
	pthread_mutex_unlock(&locks[slot % LOCKS]);
	if (*mine == NONE)
		free(b);
}

/* A tree that is held comes loose. */
static void loosen(void)
{
	unsigned long tree = __atomic_fetch_add(&next_tree, 1, __ATOMIC_RELAXED);
	uint32_t first, slot;

	if (tree >= nr_loose / TREE)
		return;
	first = (uint32_t)(nr_held + tree * TREE);
	for (bool gone = false; !gone;) {
		slot = slot_of[first];
		pthread_mutex_lock(&locks[slot % LOCKS]);
		gone = slot_of[first] == slot;
		if (gone) {
			*place(slot) = NULL;
			within[slot] = slot_of[first] = NONE;
			loosened[tree] = true;
		}
		pthread_mutex_unlock(&locks[slot % LOCKS]);
	}
}

static bool move_one(uint64_t *r)
{
	uint64_t tree = any(r, nr_loose / TREE), nr = nr_held + nr_loose / TREE, i = any(r, nr);
	uint32_t number = (uint32_t)(i < nr_held ? i : nr_held + tree * TREE);
	uint64_t below = number < nr_held ? number : nr_held;
	uint32_t to = slot_number(any(r, below ? below : 1), any(r, SLOTS));

	return number >= ROOTS && move_to(number, to);
}

static void *mutate(void *arg)
{
	unsigned long me = (unsigned long)(uintptr_t)arg % THREADS;
	struct churn *c = calloc(1, sizeof(*c));
	uint64_t due_ns = now_ns(), loosen_ns = due_ns;

	c->r = (uint64_t)(uintptr_t)arg * UINT64_C(0x9e3779b97f4a7c15) + 1;
	while (!over) {
		for (int i = 0; i < BATCH; i += move_one(&c->r))
			;
		for (int i = 0; i < BATCH / CHURN_EACH; i++)
			churn(c);
		done[me] += BATCH;
		due_ns += pace_ns;
		if (now_ns() > loosen_ns) {
			loosen_ns += LOOSEN_NS;
			loosen();
		}
		while (due_ns > now_ns() + PAUSE_NS && !over) {
			const struct timespec pause = {.tv_nsec = PAUSE_NS};

			nanosleep(&pause, NULL);
		}
	}
	return NULL;
}

static uint32_t *order(unsigned long nr, uint64_t *r)
{
	uint32_t *v = calloc(nr, sizeof(*v));

	for (uint32_t i = 0; i < nr; i++) {
		uint64_t k = any(r, i + 1u);

		v[i] = v[k];
		v[k] = i;
	}
	return v;
}

static uint32_t *allocated; /* their order: where a block is says nothing of its number */
static uint64_t seeds[THREADS];

static void *allocate_half(void *arg)
{
	unsigned long me = (unsigned long)(uintptr_t)arg, nr = nr_held + nr_loose;

	for (unsigned long i = me; i < nr; i += THREADS) {
		uint32_t number = allocated[i];
		struct block *b = number < nr_held ? get_held(&seeds[me]) : get_loose(&seeds[me]);

		blocks[number] = (uint64_t)(uintptr_t)b ^ MANGLE;
		if (i / THREADS % 64 == 63)
			usleep(1000); /* not faster than a recorder that others hold up */
	}
	return NULL;
}

static void run_both(void *(*what)(void *), unsigned long seed, pthread_t *threads)
{
	for (unsigned long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, what, (void *)(uintptr_t)(seed * THREADS + i));
}

static void join_both(pthread_t *threads)
{
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void make(unsigned long nr, uint64_t *r)
{
	pthread_t threads[THREADS];

	nr_lost = nr_loose = nr / 100 / TREE * TREE;
	nr_held = nr - nr_lost - nr_loose;
	nr = nr_held + nr_loose;
	blocks = calloc(nr, sizeof(*blocks));
	slot_of = calloc(nr, sizeof(*slot_of));
	within = calloc(nr * SLOTS + 1, sizeof(*within));
	loosened = calloc(nr_loose / TREE + 1, sizeof(*loosened));
	allocated = order(nr, r);
	for (int i = 0; i < THREADS; i++)
		seeds[i] = any(r, UINT32_MAX) + 1;
	run_both(allocate_half, 0, threads);
	join_both(threads);
	link_all(r);
	lose(r);
	scrub();
}

/* Go through all that the roots hold.  Returns whether it is what it should be. */
static bool check(void)
{
	unsigned long nr = nr_held + nr_loose, found = 0, expected = nr_held;
	uint32_t *queue = calloc(nr, sizeof(*queue));
	bool *seen = calloc(nr, sizeof(*seen)), right = true;

	for (uint32_t i = 0; i < ROOTS; i++)
		seen[queue[found++] = i] = roots[i] == at(i);
	for (unsigned long i = 0; i < found; i++)
		for (int k = 0; k < SLOTS; k++) {
			uint32_t to = within[slot_number(queue[i], (uint64_t)k)];
			uint32_t number = (to & ~WEAK) - 1;

			if (to == NONE || to == CHURNED)
				continue;
			right &= *place(slot_number(queue[i], (uint64_t)k)) == at(number);
			if (!seen[number])
				seen[queue[found++] = number] = true;
		}
	for (unsigned long i = 0; i < nr_loose; i++)
		expected += !loosened[i / TREE];
	for (unsigned long i = 0; i < nr_held; i++)
		right &= seen[i];
	return right && found == expected;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	unsigned long moves;
	uint64_t r, begin_ns;
	char byte;

	if (argc < 4 || (argc > 4 && read(STDIN_FILENO, &byte, 1) != 1))
		return 99;
	moves = strtoul(argv[2], NULL, 10);
	pace_ns = moves ? BATCH * THREADS * UINT64_C(1000000000) / moves : 0;
	r = strtoul(argv[3], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	make(strtoul(argv[1], NULL, 10), &r);
	begin_ns = now_ns();
	run_both(mutate, strtoul(argv[3], NULL, 10), threads);
	say("ready\n");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	over = true;
	join_both(threads);
	say("%s held %lu lost %lu loosened %lu moves %lu milliseconds %lu\n",
	    check() ? "right" : "wrong", nr_held, nr_lost, next_tree * TREE, done[0] + done[1],
	    (unsigned long)((now_ns() - begin_ns) / 1000000));
	return 0;
}
