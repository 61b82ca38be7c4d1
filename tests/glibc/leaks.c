/* leaks.c - for check.py: loses known blocks, by each function that allocates, in two threads
 *
 * It loses them, allocates and frees others for a while, and prints "BLOCKS BYTES" of what is lost.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define KEPT 1009

static void *volatile kept[KEPT];
static long blocks, bytes;

static void lose(void *block, long size)
{
	kept[0] = block;
	blocks++;
	bytes += size;
}

static void *lose_all(void *arg)
{
	(void)arg;
	for (int i = 0; i < 23; i++)
		lose(malloc(47), 47);
	for (int i = 0; i < 29; i++)
		lose(calloc(3, 53), 159);
	for (int i = 0; i < 31; i++)
		lose(realloc(malloc(7), 2003), 2003);
	for (int i = 0; i < 5; i++)
		lose(memalign(256, 100003), 100003);
	lose(aligned_alloc(64, 640), 640);
	return NULL;
}

int main(void)
{
	pthread_t thread;

	lose_all(NULL);
	if (pthread_create(&thread, NULL, lose_all, NULL) || pthread_join(thread, NULL))
		return 1;
	/* and all over again what is freed */
	for (int i = 0; i < 20 * KEPT; i++) {
		free(kept[i % KEPT]);
		kept[i % KEPT] = i % 2 ? malloc(i % 700 + 1) : calloc(1, i % 1300 + 1);
	}
	for (int i = 0; i < KEPT; i++)
		free(kept[i]);
	/* what is in kept[0] by now was freed, too: the last that was lost */
	printf("%ld %ld\n", blocks - 1, bytes - 640);
	return 0;
}
