/* many_threads.c - waves of threads that all live at once, each of which allocates what only it does
 *
 * usage: many_threads THREADS WAVES
 *
 * Waits for a line before each wave, and once all threads of it live, when it says "all", and when all are
 * joined.  Thread I
 * of all waves keeps a block of 1000 + I bytes, frees one of 7 and one of 20000 + I.  At the end it
 * prints a line "I TID" for each.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST 20000

static int tids[MOST];
static void *volatile kept[MOST];
static pthread_barrier_t all, go;

static void *work(void *arg)
{
	long me = (long)arg;
	void *block = malloc(7);

	tids[me] = gettid();
	__asm__ volatile("" : "+r"(block)); /* or the compiler leaves both out */
	free(block);
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&go);
	kept[me] = malloc(1000 + (size_t)me);
	block = malloc(20000 + (size_t)me);
	__asm__ volatile("" : "+r"(block));
	free(block);
	return NULL;
}

static void wave(pthread_t *threads, long first, long nr)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (long i = 0; i < nr; i++)
		if (pthread_create(&threads[i], &attr, work, (void *)(first + i)))
			exit(1);
	pthread_barrier_wait(&all);
	puts("all");
	getchar();
	pthread_barrier_wait(&go);
	for (long i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	long nr = argc > 1 ? atol(argv[1]) : 1, waves = argc > 2 ? atol(argv[2]) : 1;
	pthread_t *threads = calloc((size_t)nr, sizeof(*threads));

	if (nr < 1 || nr * waves > MOST)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	pthread_barrier_init(&all, NULL, (unsigned int)nr + 1);
	pthread_barrier_init(&go, NULL, (unsigned int)nr + 1);
	puts("ready");
	for (long w = 0; w < waves; w++) {
		getchar();
		wave(threads, w * nr, nr);
	}
	puts("joined");
	getchar();
	for (long i = 0; i < nr * waves; i++)
		printf("%ld %d\n", i, tids[i]);
	return 0;
}
