/* inject_target.c - threads that use all of an allocator, check what their blocks hold, and count
 *
 * Usage: inject_target THREADS.  Each line on stdin is one letter, and is answered by a line:
 *   g  let the threads run: "running"
 *   p  have them stand, outside of the allocator: "paused BLOCKS BYTES CALLS", what they have now,
 *      and how many blocks they were given so far
 *   e  the same, and they have freed all before
 *   c  "ok ROUNDS" once each thread has gone on; one that finds a wrong byte ends the program
 *   l  leak: "leaked BLOCKS BYTES"
 * At the end of stdin the program ends by itself.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>

#include "samples/sample.h"

enum { MOST = 64, SLOTS = 64, MAX_BYTES = 700, REST = 64, OPERATIONS = 5 };
enum mode { PAUSED, RUNNING, EMPTYING };

/* A block is filled with bytes that follow from its number. */
struct block {
	unsigned char *at;
	size_t bytes;
	unsigned char first;
};

struct worker {
	struct block blocks[SLOTS];
	unsigned long rounds, calls;
	unsigned int random;
	enum mode mode; /* which it is in */
	pthread_t thread;
};

static struct worker workers[MOST];
static int nr_workers;
static enum mode wanted = PAUSED;
static struct leak_sum leaked;

static unsigned int next_random(struct worker *w)
{
	w->random = w->random * 1103515245 + 12345;
	return w->random >> 8;
}

static void wrong(const char *what)
{
	say("wrong: %s\n", what);
	_exit(98);
}

static void fill(struct block *b, unsigned char first)
{
	b->first = first;
	for (size_t i = 0; i < b->bytes; i++)
		b->at[i] = (unsigned char)(first + i);
}

static void check(const struct block *b, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (b->at[i] != (unsigned char)(b->first + i))
			wrong("a byte");
}

static void release(struct block *b)
{
	if (!b->at)
		return;
	check(b, b->bytes);
	free(b->at);
	b->at = NULL;
}

static void resize(struct worker *w, struct block *b, size_t bytes)
{
	const size_t kept = !b->at ? 0 : b->bytes < bytes ? b->bytes : bytes;
	unsigned char *moved = realloc(b->at, bytes);

	if (!moved)
		wrong("realloc");
	b->at = moved;
	check(b, kept);
	b->bytes = bytes;
	w->calls++;
}

static void allocate(struct worker *w, struct block *b, size_t bytes, unsigned int how)
{
	void *at = NULL;

	switch (how) {
	case 0:
		at = malloc(bytes);
		break;
	case 1:
		at = calloc(3, bytes = bytes / 3 + 1);
		bytes *= 3;
		for (size_t i = 0; at && i < bytes; i++)
			if (((unsigned char *)at)[i])
				wrong("calloc");
		break;
	case 2:
		if (posix_memalign(&at, 64, bytes) || (uintptr_t)at % 64)
			wrong("posix_memalign");
		break;
	default:
		at = aligned_alloc(128, bytes = (bytes + 127) / 128 * 128);
		if ((uintptr_t)at % 128)
			wrong("aligned_alloc");
	}
	if (!at)
		wrong("no memory");
	w->calls++;
	*b = (struct block){.at = at, .bytes = bytes};
}

static void work(struct worker *w)
{
	struct block *b = &w->blocks[next_random(w) % SLOTS];
	const unsigned int how = next_random(w) % OPERATIONS;
	const size_t bytes = 1 + next_random(w) % MAX_BYTES;

	if (how == OPERATIONS - 1) {
		resize(w, b, bytes);
	} else {
		release(b);
		if (next_random(w) % 4 == 0)
			return;
		allocate(w, b, bytes, how);
	}
	fill(b, (unsigned char)next_random(w));
}

static void *run(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		const enum mode mode = __atomic_load_n(&wanted, __ATOMIC_ACQUIRE);

		for (int i = 0; mode == EMPTYING && i < SLOTS; i++)
			release(&w->blocks[i]);
		for (int i = 0; mode == RUNNING && i < REST; i++)
			work(w);
		__atomic_add_fetch(&w->rounds, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&w->mode, mode, __ATOMIC_RELEASE);
		usleep(1000);
	}
	return NULL;
}

static void switch_to(enum mode mode)
{
	__atomic_store_n(&wanted, mode, __ATOMIC_RELEASE);
	for (int i = 0; i < nr_workers; i++)
		while (__atomic_load_n(&workers[i].mode, __ATOMIC_ACQUIRE) != mode)
			usleep(1000);
}

static void tell_sums(void)
{
	unsigned long blocks = 0, bytes = 0, calls = 0;

	for (int i = 0; i < nr_workers; i++) {
		calls += workers[i].calls;
		for (int k = 0; k < SLOTS; k++) {
			blocks += workers[i].blocks[k].at != NULL;
			bytes += workers[i].blocks[k].at ? workers[i].blocks[k].bytes : 0;
		}
	}
	say("paused %lu %lu %lu\n", blocks, bytes, calls);
}

/* Each thread ends a round that began after this was asked. */
static void tell_that_all_go_on(void)
{
	unsigned long sum = 0;

	for (int i = 0; i < nr_workers; i++) {
		unsigned long *rounds = &workers[i].rounds;
		unsigned long before = __atomic_load_n(rounds, __ATOMIC_ACQUIRE);

		while (__atomic_load_n(rounds, __ATOMIC_ACQUIRE) < before + 2)
			usleep(1000);
		sum += before + 2;
	}
	say("ok %lu\n", sum);
}

FRAME static void leak_here(size_t bytes)
{
	leak_add(&leaked, malloc(bytes), bytes);
	AFTER_CALL();
}

FRAME static void leak_all(void)
{
	for (int i = 0; i < LEAK_BLOCKS; i++)
		leak_here(LEAK_BYTES);
	AFTER_CALL();
}

FRAME static void serve(char command)
{
	switch (command) {
	case 'g':
		switch_to(RUNNING);
		say("running\n");
		break;
	case 'p':
		switch_to(PAUSED);
		tell_sums();
		break;
	case 'e':
		switch_to(EMPTYING);
		switch_to(PAUSED);
		tell_sums();
		break;
	case 'c':
		tell_that_all_go_on();
		break;
	case 'l':
		leak_all();
		say("leaked %lu %lu\n", leaked.blocks, leaked.bytes);
	}
	AFTER_CALL();
}

int main(int argc, char **argv)
{
	char c;

	nr_workers = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 16;
	if (nr_workers > MOST)
		return 2;
	for (int i = 0; i < nr_workers; i++) {
		workers[i].random = (unsigned int)i * 77 + 1;
		if (pthread_create(&workers[i].thread, NULL, run, &workers[i]))
			return 3;
	}
	say("ready\n");
	while (read(STDIN_FILENO, &c, 1) == 1)
		serve(c);
	return 0;
}
