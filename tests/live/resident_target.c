/* resident_target.c - memory of each kind, of known size, that it stays in
 *
 * It says what it has of each kind in bytes, then "ready", and waits until stdin ends.  With an
 * argument it says "begin" first, and waits for a byte.
 *   get_kept     one of a hundred blocks of a heap: the others, of get_dropped, are freed
 *   get_large    a block that fills all of its pages
 *   map_half     a mapping of which half is touched
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../say.h"

#define F   __attribute__((noipa))
#define MIB (1u << 20)

enum { KEPT = 1009, SPACE = 100, BLOCK = 400, LARGE = 20 * MIB, HALF = 4 * MIB, THREADS = 2 };

static char table[5 * MIB];
static void *kept[KEPT], *large;
static pthread_barrier_t waiting;

F void *get_kept(void)
{
	return malloc(BLOCK);
}

F void *get_dropped(void)
{
	return malloc(BLOCK);
}

F void *get_large(void)
{
	char *p = malloc(LARGE);

	memset(p, 1, LARGE);
	return p;
}

F void map_half(void)
{
	char *p = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(p, 1, HALF);
}

F void make_holes(void)
{
	static void *dropped[KEPT * SPACE];

	for (int i = 0; i < KEPT * SPACE; i++)
		if (i % SPACE)
			dropped[i] = memset(get_dropped(), 1, BLOCK);
		else
			kept[i / SPACE] = memset(get_kept(), 1, BLOCK);
	for (int i = 0; i < KEPT * SPACE; i++)
		free(dropped[i]);
	/* the table of them is of no use any more */
	madvise((char *)((unsigned long)dropped + 4095 & ~4095ul), sizeof(dropped) - 8192,
		MADV_DONTNEED);
}

static void *deep_thread(void *arg)
{
	volatile char stack[MIB];
	char c;

	for (size_t i = 0; i < sizeof(stack); i += 1024)
		stack[i] = 1;
	pthread_barrier_wait(&waiting);
	if (read(0, &c, 1) < 0)
		return NULL;
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	char *shared, *code, c;

	(void)argv;
	if (argc > 1)
		say("begin\n");
	if (argc > 1 && read(0, &c, 1) != 1)
		return 98;
	large = get_large();
	map_half();
	make_holes();
	memset(table, 1, sizeof(table));
	shared = mmap(NULL, 3 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(shared, 1, 3 * MIB);
	code = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(code, 0x90, MIB);
	mprotect(code, MIB, PROT_READ | PROT_EXEC);
	pthread_barrier_init(&waiting, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, deep_thread, NULL);
	pthread_barrier_wait(&waiting);
	say("kept %u\nlarge %u\nhalf %u\nshared %u\ntable %zu\nstacks %u\n", KEPT * BLOCK, LARGE,
	    HALF, 3 * MIB, sizeof(table), THREADS * MIB);
	say("ready\n");
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
