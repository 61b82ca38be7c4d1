/* stress.c - eight threads that take each other's blocks; their own counters are the truth
 *
 * Blocks pass through slots that all threads share, so most are freed by another thread than the
 * one that allocated them, and an address is given out again at once.  No thread ends before the
 * program does: libc would free its cache then, which nobody has allocated by malloc.
 *
 * Usage: stress [EVENTS [ROUNDS]]: each thread rests for a millisecond after so many rounds.
 */
#include <pthread.h>
#include <stdint.h>

#include "sample.h"

enum { THREADS = 8, SLOTS = 256, MAX_BYTES = 500 };

/* What each block begins with: how large it is. */
struct head {
	size_t bytes;
};

/* Counted by each thread for itself. */
struct counts {
	unsigned long mallocs, callocs, frees, reallocs, refused;
};

static struct head *slots[SLOTS];
static unsigned long rounds = 1000000 / THREADS / 2, rest_after = 1000000;
static pthread_barrier_t done; /* by all threads */

static unsigned int next_random(unsigned int *state)
{
	*state = *state * 1103515245 + 12345;
	return *state >> 8;
}

/* Put @block, or NULL, into a slot; returns what was there. */
static struct head *exchange(unsigned int slot, struct head *block)
{
	return __atomic_exchange_n(&slots[slot % SLOTS], block, __ATOMIC_ACQ_REL);
}

FRAME static struct head *allocate(struct counts *c, size_t bytes)
{
	struct head *block = bytes % 3 ? malloc(bytes) : calloc(1, bytes);

	*(bytes % 3 ? &c->mallocs : &c->callocs) += 1;
	block->bytes = bytes;
	return block;
}

FRAME static void release(struct counts *c, struct head *block)
{
	c->frees += block != NULL;
	free(block);
	AFTER_CALL();
}

FRAME static struct head *resize(struct counts *c, struct head *block, size_t bytes)
{
	struct head *moved = realloc(block, bytes);

	if (!moved) {
		c->refused++;
		return block;
	}
	c->reallocs++;
	moved->bytes = bytes;
	return moved;
}

static void *run(void *arg)
{
	struct counts *c = arg;
	unsigned int state = (unsigned int)(uintptr_t)c;

	for (unsigned long i = 0; i < rounds; i++) {
		unsigned int slot = next_random(&state);
		size_t bytes = sizeof(struct head) + next_random(&state) % MAX_BYTES;
		struct head *block;

		if (i % rest_after == rest_after - 1)
			usleep(1000);
		if (next_random(&state) % 4) {
			release(c, exchange(slot, allocate(c, bytes)));
			continue;
		}
		block = exchange(slot, NULL);
		if (block)
			block = resize(c, block, bytes % 5 ? bytes : SIZE_MAX / 2);
		release(c, exchange(slot, block));
	}
	pthread_barrier_wait(&done);
	for (;;)
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	static struct counts counts[THREADS];
	struct counts all = {0};
	unsigned long blocks = 0, bytes = 0;
	pthread_t thread;

	if (argc > 1)
		rounds = strtoul(argv[1], NULL, 10) / THREADS / 2;
	if (argc > 2)
		rest_after = strtoul(argv[2], NULL, 10);
	pthread_barrier_init(&done, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, run, &counts[i]);
	pthread_barrier_wait(&done);
	for (int i = 0; i < THREADS; i++) {
		all.mallocs += counts[i].mallocs;
		all.callocs += counts[i].callocs;
		all.frees += counts[i].frees;
		all.reallocs += counts[i].reallocs;
		all.refused += counts[i].refused;
	}
	for (int i = 0; i < SLOTS; i++) {
		blocks += slots[i] != NULL;
		bytes += slots[i] ? slots[i]->bytes : 0;
	}
	say("counts: mallocs=%lu callocs=%lu frees=%lu reallocs=%lu refused=%lu blocks=%lu "
	    "bytes=%lu\n",
	    all.mallocs, all.callocs, all.frees, all.reallocs, all.refused, blocks, bytes);
	return 0;
}
