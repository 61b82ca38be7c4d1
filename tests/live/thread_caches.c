/* thread_caches.c - threads come and go: each allocates 100 blocks by one call path, and frees 97
 *
 * For each byte on stdin it prints how many blocks it has lost; it ends when stdin does.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *volatile lost;
static long nr_lost;

static __attribute__((noinline)) void serve(void)
{
	void *volatile blocks[100];

	for (int i = 0; i < 100; i++)
		blocks[i] = malloc(503);
	for (int i = 0; i < 97; i++)
		free(blocks[i]);
	lost = blocks[99];
	nr_lost += 3;
}

static void *run(void *arg)
{
	serve();
	return arg;
}

/* Lose so many blocks, and tell how many there are now. */
static void lose(int threads)
{
	for (int i = 0; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, run, NULL) || pthread_join(thread, NULL))
			exit(1);
	}
	printf("%ld\n", nr_lost);
	fflush(stdout);
}

int main(void)
{
	lose(10);
	while (getchar() != EOF)
		lose(100);
	return 0;
}
