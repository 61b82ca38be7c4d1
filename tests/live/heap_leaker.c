/* heap_leaker.c - threads allocate, keep, free and lose blocks of all sizes, and say how many
 *
 * Half of the threads end.  Then it prints "lost BLOCKS BYTES" and "kept BLOCKS BYTES", where bytes
 * are those that malloc_usable_size() tells; with jemalloc "small BLOCKS BYTES" and "large ..." as
 * that counts what it has given out, caches of threads included; and "ready".  It waits until stdin
 * ends.  "large" are those of 16 KiB and more.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "heap_scrub.h"

#define THREADS 8
#define ROUNDS	3001
#define MOST	1009 /* blocks that a thread keeps */
#define FREED	61   /* that it has until it frees them */

struct worker {
	pthread_t thread;
	void *kept[MOST], *slots[FREED];
	unsigned int nr_kept, seed;
	struct leak_sum lost;
	size_t kept_bytes;
	bool ends;
};

static struct worker workers[THREADS];
static atomic_int nr_ready, nr_paused;

int mallctl(const char *name, void *old, size_t *len, void *new, size_t new_len)
	__attribute__((weak));
int MallocExtension_GetNumericProperty(const char *name, size_t *value) __attribute__((weak));

static size_t pick_size(unsigned int *seed)
{
	static const unsigned int most[] = {8, 64, 64, 300, 300, 300, 1500, 4000, 15000, 70000};
	unsigned int at = (unsigned int)rand_r(seed) % 10;

	/* one of a hundred is larger than a mapping of glibc's own must be */
	return (size_t)(rand_r(seed) % 100 ? 1 : 8) * (1 + (unsigned int)rand_r(seed) % most[at]);
}

/* A block that points to nothing. */
static FRAME void *get(unsigned int *seed)
{
	return calloc(1, pick_size(seed));
}

static FRAME void lose(struct worker *w)
{
	void *block = get(&w->seed);

	leak_add(&w->lost, block, malloc_usable_size(block));
	AFTER_CALL();
}

static FRAME void keep_one(struct worker *w)
{
	void *block = get(&w->seed);

	w->kept[w->nr_kept++] = block;
	w->kept_bytes += malloc_usable_size(block);
	AFTER_CALL();
}

static FRAME void free_one(struct worker *w)
{
	unsigned int at = (unsigned int)rand_r(&w->seed) % FREED;

	free(w->slots[at]);
	w->slots[at] = get(&w->seed);
	AFTER_CALL();
}

static FRAME void run(struct worker *w)
{
	for (int i = 0; i < ROUNDS; i++) {
		unsigned int what = (unsigned int)rand_r(&w->seed) % 8;

		if (what == 0)
			lose(w);
		else if (what < 3 && w->nr_kept < MOST)
			keep_one(w);
		else
			free_one(w);
	}
	/* what is in a slot is in no sum */
	for (int i = 0; i < FREED; i++) {
		free(w->slots[i]);
		w->slots[i] = NULL;
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	run(w);
	nr_ready++;
	/* what has been in the cache of one that ends is in memory that nobody uses again */
	while (nr_ready < THREADS)
		usleep(1000);
	scrub();
	nr_paused += !w->ends;
	while (!w->ends)
		pause();
	return NULL;
}

static size_t read_counter(const char *name)
{
	size_t value = 0, len = sizeof(value);

	if (mallctl(name, &value, &len, NULL, 0))
		_exit(97);
	return value;
}

static void tell_class(const char *what, const char *nmalloc, const char *ndalloc,
		       const char *allocated)
{
	say("%s %zu %zu\n", what, read_counter(nmalloc) - read_counter(ndalloc),
	    read_counter(allocated));
}

static void tell_all(void)
{
	struct leak_sum lost = {0};
	size_t kept = 0, kept_bytes = 0, allocated;
	uint64_t epoch = 1;

	for (int i = 0; i < THREADS; i++) {
		lost.blocks += workers[i].lost.blocks;
		lost.bytes += workers[i].lost.bytes;
		kept += workers[i].nr_kept;
		kept_bytes += workers[i].kept_bytes;
	}
	say("lost %lu %lu\nkept %zu %zu\n", lost.blocks, lost.bytes, kept, kept_bytes);
	if (MallocExtension_GetNumericProperty) {
		if (!MallocExtension_GetNumericProperty("generic.current_allocated_bytes", &allocated))
			_exit(97);
		say("allocated 0 %zu\n", allocated);
	}
	if (!mallctl)
		return;
	if (mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch)))
		_exit(97);
	tell_class("small", "stats.arenas.4096.small.nmalloc", "stats.arenas.4096.small.ndalloc",
		   "stats.arenas.4096.small.allocated");
	tell_class("large", "stats.arenas.4096.large.nmalloc", "stats.arenas.4096.large.ndalloc",
		   "stats.arenas.4096.large.allocated");
}

int main(void)
{
	char byte;

	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i].seed = i + 1;
		workers[i].ends = i % 2;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 98;
	}
	for (unsigned int i = 1; i < THREADS; i += 2)
		pthread_join(workers[i].thread, NULL);
	while (nr_paused < THREADS / 2)
		usleep(1000);
	tell_all();
	scrub(); /* before, too: who counts its pages then has all of them */
	say("ready\n");
	scrub();
	return read(STDIN_FILENO, &byte, 1) < 0;
}
