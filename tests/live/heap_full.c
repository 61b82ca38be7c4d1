/* heap_full.c - fills heaps of glibc's, so that of each another rest is left
 *
 * It says "kept BLOCKS BYTES", what a thread has allocated, and "ready".  Nothing is lost.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HEAP   (UINT64_C(64) << 20)
#define LARGE  (96u << 10) /* less than what gets a mapping of its own */
#define BLOCKS 8000

/* Bytes at the end of a heap: glibc divides them in two ways. */
static const size_t rests[] = {32, 48, 64, 80, 256};

static void *volatile kept[BLOCKS]; /* or nobody would write it */
static size_t nr, bytes;

static uint64_t keep(size_t size)
{
	void *p = malloc(size);

	if (!p || nr == BLOCKS)
		exit(2);
	kept[nr++] = p;
	bytes += malloc_usable_size(p);
	/* where the next chunk begins */
	return (uint64_t)(uintptr_t)p + malloc_usable_size(p) - 8;
}

/* Fill the heap in which @at is, but for @rest bytes, and begin the next one. */
static uint64_t fill(uint64_t at, size_t rest)
{
	uint64_t end = (at | (HEAP - 1)) + 1;

	while (end - at > 2 * LARGE)
		at = keep(LARGE);
	at = keep(end - at - rest - LARGE / 2 - 8);
	at = keep(end - at - rest - 8);
	if (end - at != rest)
		exit(3);
	at = keep(LARGE);
	if (at < end && at > end - HEAP)
		exit(4);
	return at;
}

static void *fill_all(void *arg)
{
	uint64_t at = keep(100);

	for (size_t i = 0; i < sizeof(rests) / sizeof(*rests); i++)
		at = fill(at, rests[i]);
	return arg;
}

int main(void)
{
	pthread_t thread;

	setvbuf(stdout, NULL, _IONBF, 0);
	if (pthread_create(&thread, NULL, fill_all, NULL) || pthread_join(thread, NULL))
		return 1;
	printf("kept %zu %zu\nready\n", nr, bytes);
	for (;;)
		pause();
}
