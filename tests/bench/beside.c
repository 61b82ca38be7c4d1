/* beside.c - a program that leaks by known paths, for memleak.py
 *
 * For each line on stdin it leaks by each of its paths, frees some of what it leaked before, and
 * says of each path what is outstanding: "BYTES BLOCKS OUTERMOST;...;INNERMOST", then an empty
 * line. It has frame pointers, but qsort() of libc has none.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAME	  __attribute__((noinline, noipa))
#define KEPT	  10000
#define NR_BLOCKS 23

/* What one path has. */
struct path {
	const char *functions;
	size_t size;
	unsigned long bytes, blocks;
	void *kept[KEPT];
};

static struct path paths[] = {
	{"main;serve;plain;leak", 47, 0, 0, {0}},
	{"main;serve;deep;deep;deep;deep;deep;deep;deep;leak", 53, 0, 0, {0}},
	{"main;serve;sorted;compare;leak", 59, 0, 0, {0}},
	{"thread;leak", 61, 0, 0, {0}},
	{"main;serve;cleared;leak_cleared", 67, 0, 0, {0}},
	{"main;serve;moved;leak_moved", 71, 0, 0, {0}},
	{"main;serve;aligned;leak_aligned", 73, 0, 0, {0}},
	{"main;serve;cache;leak", 79, 0, 0, {0}},
};

static void keep(struct path *path, void *block)
{
	path->kept[path->blocks++] = block;
	path->bytes += path->size;
}

FRAME static void leak(struct path *path)
{
	keep(path, malloc(path->size));
}

FRAME static void leak_cleared(struct path *path)
{
	keep(path, calloc(1, path->size));
}

FRAME static void leak_moved(struct path *path)
{
	keep(path, realloc(NULL, path->size));
}

FRAME static void leak_aligned(struct path *path)
{
	void *block;

	if (!posix_memalign(&block, 64, path->size))
		keep(path, block);
}

FRAME static void plain(struct path *path)
{
	leak(path);
	__asm__ volatile("");
}

FRAME static void deep(struct path *path, int more)
{
	if (more)
		deep(path, more - 1);
	else
		leak(path);
	__asm__ volatile("");
}

static struct path *compared;

FRAME static int compare(const void *a, const void *b)
{
	leak(compared);
	return *(const char *)a - *(const char *)b;
}

FRAME static void sorted(struct path *path)
{
	char two[2] = {2, 1};

	compared = path;
	qsort(two, 2, 1, compare);
}

FRAME static void *thread(void *path)
{
	leak(path);
	return NULL;
}

FRAME static void cleared(struct path *path)
{
	leak_cleared(path);
	__asm__ volatile("");
}

FRAME static void moved(struct path *path)
{
	leak_moved(path);
	__asm__ volatile("");
}

FRAME static void aligned(struct path *path)
{
	leak_aligned(path);
	__asm__ volatile("");
}

FRAME static void cache(struct path *path)
{
	if (path->blocks >= NR_BLOCKS) {
		free(path->kept[--path->blocks]);
		path->bytes -= path->size;
	}
	leak(path);
	__asm__ volatile("");
}

FRAME static void serve(void)
{
	pthread_t other;

	for (int i = 0; i < NR_BLOCKS; i++) {
		plain(&paths[0]);
		deep(&paths[1], 6);
		sorted(&paths[2]);
		if (!pthread_create(&other, NULL, thread, &paths[3]))
			pthread_join(other, NULL);
		cleared(&paths[4]);
		moved(&paths[5]);
		aligned(&paths[6]);
		cache(&paths[7]);
	}
}

int main(void)
{
	char line[100];

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		serve();
		for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
			printf("%lu %lu %s\n", paths[i].bytes, paths[i].blocks, paths[i].functions);
		puts("");
	}
	return 0;
}
