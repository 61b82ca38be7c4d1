/* random_server.c - threads that answer requests of random depths with blocks of random sizes
 *
 * usage: random_server [ALLOCATIONS].  The hardest of what tests/bench/trace_size.py records: which
 * function calls which, how much each has on its stack, how large a block is and how long it lives
 * are random.  What is random comes from fixed seeds, one a thread, so each run does the same.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define THREADS	  4
#define SLOTS	  4096 /* blocks that a thread may have */
#define DEEPEST	  40
#define HANDLERS  8
#define LARGEST	  4096
#define PER_VISIT 3 /* blocks of one visit, at most */

struct worker {
	uint64_t random;
	long left; /* allocations */
	void *slots[SLOTS];
};

static uint64_t next_random(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random * 0x2545f4914f6cdd1du >> 32;
}

/* Replace some blocks by new ones. */
static __attribute__((noinline)) void fill_slots(struct worker *w)
{
	for (uint64_t nr = next_random(w) % PER_VISIT + 1; nr && w->left > 0; nr--, w->left--) {
		void **slot = &w->slots[next_random(w) % SLOTS];

		free(*slot);
		*slot = malloc(next_random(w) % LARGEST + 1);
	}
}

static void call_handler(struct worker *w, unsigned int depth);

/* Functions that differ in what they have on the stack. */
#define HANDLER(n)                                                                              \
	static __attribute__((noinline)) void handler_##n(struct worker *w, unsigned int depth) \
	{                                                                                       \
		volatile uint64_t data[1 + (n)*3];                                              \
                                                                                                \
		data[next_random(w) % (1 + (n)*3)] = depth;                                     \
		call_handler(w, depth - 1);                                                     \
		data[0]++;                                                                      \
	}

HANDLER(0)
HANDLER(1)
HANDLER(2)
HANDLER(3)
HANDLER(4)
HANDLER(5)
HANDLER(6)
HANDLER(7)

static void (*const handlers[HANDLERS])(struct worker *, unsigned int) = {
	handler_0, handler_1, handler_2, handler_3, handler_4, handler_5, handler_6, handler_7};

static __attribute__((noinline)) void call_handler(struct worker *w, unsigned int depth)
{
	if (!depth)
		fill_slots(w);
	else
		handlers[next_random(w) % HANDLERS](w, depth);
	/* no tail call */
	__asm__ volatile("" : : : "memory");
}

static void *work(void *arg)
{
	struct worker *w = arg;

	while (w->left > 0)
		call_handler(w, (unsigned int)(next_random(w) % DEEPEST));
	for (int i = 0; i < SLOTS; i++)
		free(w->slots[i]);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS];
	long allocations = argc > 1 ? atol(argv[1]) : 200000;
	pthread_t threads[THREADS];

	for (int t = 0; t < THREADS; t++) {
		workers[t].random = 0x9e3779b97f4a7c15u * (uint64_t)(t + 1);
		workers[t].left = allocations / THREADS;
		if (pthread_create(&threads[t], NULL, work, &workers[t]))
			return 1;
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	return 0;
}
