/* load.c - allocate and free at a given rate, and count it
 *
 * usage: load RATE SECONDS THREADS [DEPTH]
 *
 * RATE is of all threads together, 0 for as fast as they can; allocations stand DEPTH (20) frames
 * below the thread's first.  Prints "ready" when all threads stand, runs for a line on stdin,
 * prints what it did, and stays as it is until stdin ends: a thread's end would free its cache.
 *
 * Of 64 blocks 4 are resized and 1 is resized in vain; for 1024 one more is leaked, by leak().
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../say.h"

#define MAX_THREADS 64
#define LIVE	    64 /* blocks that a thread holds */
#define TICK_NS	    1000000L

struct counts {
	unsigned long allocs, alloc_bytes; /* realloc's new blocks among them */
	unsigned long frees;
	unsigned long releases; /* calls of realloc with a block */
	unsigned long restores; /* those among them that failed */
	unsigned long leaks, leak_bytes;
};

struct worker {
	pthread_t thread;
	struct counts counts;
	void *live[LIVE];
	unsigned long nr; /* allocations made by its loop */
};

static struct worker workers[MAX_THREADS];
static pthread_barrier_t ready, start, done;
static double rate;	/* allocations a second of each thread; 0: no limit */
static double duration; /* seconds */
static int depth = 20;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void *resize(struct counts *c, void *block, size_t size)
{
	void *moved = realloc(block, size);

	c->releases++;
	if (!moved) {
		c->restores++;
		return block;
	}
	c->allocs++;
	c->alloc_bytes += size;
	return moved;
}

/* A function of its own: a report's leaks that are on another path are none. */
__attribute__((noinline, noclone)) static void leak(struct counts *c, size_t size)
{
	void *block = malloc(size);

	__asm__ volatile("" : "+r"(block)); /* or the compiler leaves it out */
	c->allocs++;
	c->alloc_bytes += size;
	c->leaks++;
	c->leak_bytes += size;
}

static void step(struct worker *w)
{
	struct counts *c = &w->counts;
	unsigned long n = w->nr++;
	size_t size = 16 + n % 31 * 16;
	void **slot = &w->live[n % LIVE];
	void *block = malloc(size);

	if (!block)
		_exit(98);
	c->allocs++;
	c->alloc_bytes += size;
	if (n % 16 == 3) {
		size += 1000;
		block = resize(c, block, size);
	}
	if (n % 64 == 7)
		block = resize(c, block, (size_t)-1 >> 1);
	if (n % 1024 == 11)
		leak(c, size);
	if (*slot) {
		free(*slot);
		c->frees++;
	}
	*slot = block;
}

/* Frames for the unwinder. */
__attribute__((noinline, noclone)) static void steps(struct worker *w, unsigned long nr, int frames)
{
	if (frames > 1) {
		steps(w, nr, frames - 1);
		__asm__ volatile("" ::: "memory"); /* no tail call */
		return;
	}
	while (nr--)
		step(w);
}

static void run(struct worker *w)
{
	struct timespec tick;
	double begin = now(), spent;

	clock_gettime(CLOCK_MONOTONIC, &tick);
	while ((spent = now() - begin) < duration) {
		if (rate == 0) {
			steps(w, 100, depth);
			continue;
		}
		if ((double)w->nr < rate * spent)
			steps(w, (unsigned long)(rate * spent) - w->nr, depth);
		tick.tv_nsec += TICK_NS;
		tick.tv_sec += tick.tv_nsec / 1000000000;
		tick.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &tick, NULL);
	}
	steps(w, rate == 0 ? 0 : (unsigned long)(rate * duration) - w->nr, depth);
	for (int i = 0; i < LIVE; i++) {
		free(w->live[i]);
		w->counts.frees += w->live[i] != NULL;
	}
}

static void *worker_main(void *arg)
{
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&start);
	run(arg);
	pthread_barrier_wait(&done);
	pause();
	return NULL;
}

static void wait_for_byte(void)
{
	char byte;

	if (read(STDIN_FILENO, &byte, 1) <= 0)
		_exit(0);
}

static void print_truth(int threads, double seconds)
{
	struct counts sum = {0};

	for (int i = 0; i < threads; i++) {
		const struct counts *c = &workers[i].counts;

		sum.allocs += c->allocs;
		sum.alloc_bytes += c->alloc_bytes;
		sum.frees += c->frees;
		sum.releases += c->releases;
		sum.restores += c->restores;
		sum.leaks += c->leaks;
		sum.leak_bytes += c->leak_bytes;
	}
	say("truth: allocs=%lu alloc_bytes=%lu frees=%lu releases=%lu restores=%lu leaks=%lu "
	    "leak_bytes=%lu milliseconds=%.0f\n",
	    sum.allocs, sum.alloc_bytes, sum.frees, sum.releases, sum.restores, sum.leaks,
	    sum.leak_bytes, seconds * 1e3);
}

int main(int argc, char **argv)
{
	int threads = argc > 3 ? atoi(argv[3]) : 0;
	double begin;

	if (threads < 1 || threads > MAX_THREADS)
		return 2;
	rate = atof(argv[1]) / threads;
	duration = atof(argv[2]);
	if (argc > 4)
		depth = atoi(argv[4]);
	pthread_barrier_init(&ready, NULL, (unsigned int)threads + 1);
	pthread_barrier_init(&start, NULL, (unsigned int)threads + 1);
	pthread_barrier_init(&done, NULL, (unsigned int)threads + 1);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]))
			return 1;
	pthread_barrier_wait(&ready);
	say("ready\n");
	wait_for_byte();
	begin = now();
	pthread_barrier_wait(&start);
	pthread_barrier_wait(&done);
	print_truth(threads, now() - begin);
	while (1)
		wait_for_byte();
}
