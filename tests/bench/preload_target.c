/* preload_target.c - malloc and free 20 frames deep, in some threads, or in a program that has but
 * one: what recording costs it
 *
 * usage: preload_target THREADS PAIRS
 * Each thread keeps a few blocks, so that what it frees is not what it allocated last.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define DEPTH 20
#define KEPT  16

static unsigned long pairs;

static __attribute__((noinline, noipa)) void loop(unsigned long nr)
{
	void *kept[KEPT] = {0};

	for (unsigned long i = 0; i < nr; i++) {
		free(kept[i % KEPT]);
		kept[i % KEPT] = malloc(16 + i % 7 * 24);
	}
	for (int i = 0; i < KEPT; i++)
		free(kept[i]);
}

static __attribute__((noinline, noipa)) int descend(int depth)
{
	if (depth == 0)
		loop(pairs);
	else
		descend(depth - 1);
	__asm__ volatile("" : : : "memory");
	return depth;
}

static void *run(void *arg)
{
	descend(DEPTH);
	return arg;
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t threads[64];

	pairs = argc > 2 ? strtoul(argv[2], NULL, 10) : 100000;
	if (nr < 1 || nr > 64)
		return 2;
	if (nr == 1)
		descend(DEPTH);
	for (int i = 0; nr > 1 && i < nr; i++)
		if (pthread_create(&threads[i], NULL, run, NULL))
			return 1;
	for (int i = 0; nr > 1 && i < nr; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
