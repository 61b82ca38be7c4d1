/* filter_target.c - does with memory what it is told, thread by thread, and counts it
 *
 * usage: filter_target [COMMAND...]     without one, commands are lines on stdin
 *
 * Commands, each begun by a thread's number from 0 (the main thread):
 *   T keep N SIZE         allocate and keep N blocks
 *   T cycle N SIZE STEP K the same, of the sizes SIZE, SIZE + STEP, ... SIZE + (K - 1) STEP in turn
 *   T drop N              free the N blocks that were kept last, or all there are
 *   T grow N SIZE         resize the N blocks that were kept last
 *   T fail N              the same in vain
 *   T map N PAGES         map N ranges, and unmap the first page of each
 *   T unmap N PAGES       the same, but unmap all pages of each, from the last to the first
 *   T tid 0               print "tid TID"
 *   T who 0               print "who A F BLOCKS BYTES" of what thread A allocated, so far, and F
 *                         freed; F -1: of all that A allocated
 *   T fork N              start a child that frees the N blocks that were kept last, keeps 10 of
 *                         177 bytes, and frees 3 of these; wait for its end
 *   T spawn N             start a child that keeps N blocks of 100 bytes; wait for its end
 *   T exec N              become this program anew, which keeps N blocks of 50 bytes and frees them
 *   T threads N           start N threads one after the other, each of which keeps 2 blocks of 24
 *   T again N SIZE        the same, but all get the same number, and keep a block of SIZE; needs root
 *
 * Prints "done" after each line of stdin, and at the end what it did.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../say.h"

#define MAX_BLOCKS  (3 << 20)
#define MAX_THREADS 4

struct work {
	int thread;
	char verb[16];
	unsigned long nr, size, step, sizes;
};

static void *blocks[MAX_BLOCKS];
static unsigned long sizes[MAX_BLOCKS];
static char owners[MAX_BLOCKS]; /* threads */
static unsigned long kept, allocs, alloc_bytes, frees;
static struct work now;
static struct sum {
	unsigned long nr, bytes;
} given[MAX_THREADS], freed[MAX_THREADS][MAX_THREADS];
static pthread_barrier_t begin[MAX_THREADS], end;
static int started[MAX_THREADS];

static void add_to(struct sum *sum, unsigned long size)
{
	sum->nr++;
	sum->bytes += size;
}

/* The block @i is freed. */
static void count_free(unsigned long i)
{
	add_to(&freed[(int)owners[i]][now.thread], sizes[i]);
}

static void keep(void *block, unsigned long size)
{
	if (!block || kept == MAX_BLOCKS)
		_exit(98);
	blocks[kept] = block;
	owners[kept] = (char)now.thread;
	sizes[kept++] = size;
	add_to(&given[now.thread], size);
	allocs++;
	alloc_bytes += size;
}

static void resize(unsigned long i, unsigned long size)
{
	void *moved = realloc(blocks[i], size);

	if (!moved)
		return;
	count_free(i);
	blocks[i] = moved;
	owners[i] = (char)now.thread;
	sizes[i] = size;
	add_to(&given[now.thread], size);
	allocs++;
	frees++;
	alloc_bytes += size;
}

static void map_one(unsigned long pages)
{
	char *range = mmap(NULL, pages * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (range == MAP_FAILED || munmap(range, 4096))
		_exit(97);
}

static void unmap_backwards(unsigned long pages)
{
	char *range = mmap(NULL, pages * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (range == MAP_FAILED)
		_exit(97);
	while (pages--)
		if (munmap(range + pages * 4096, 4096))
			_exit(97);
}

static void *keep_one(void *arg)
{
	keep(malloc(now.size), now.size);
	*(pid_t *)arg = gettid();
	return arg;
}

/* Threads one after the other, which get one number: pid_namespaces(7) says how. */
static void start_numbered(unsigned long nr)
{
	pid_t first = 0, tid;
	pthread_t thread;
	char text[16];
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY);

	while (nr--) {
		snprintf(text, sizeof(text), "%d", first - 1);
		/* who waits for it may be a little early */
		while (first && !syscall(SYS_tkill, first, 0))
			usleep(1000);
		if (first && pwrite(fd, text, strlen(text), 0) < 0)
			_exit(92);
		if (pthread_create(&thread, NULL, keep_one, &tid) || pthread_join(thread, NULL))
			_exit(96);
		if (first && tid != first)
			_exit(91);
		first = tid;
	}
	close(fd);
}

static void *short_life(void *arg)
{
	for (int i = 0; i < 2; i++)
		keep(malloc(24), 24);
	return arg;
}

static void start_and_join(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, short_life, NULL) || pthread_join(thread, NULL))
		_exit(96);
}

/* In a child: free @nr blocks that the parent kept, keep 10, and free 3 of these. */
static void fork_and_wait(unsigned long nr)
{
	pid_t pid = fork();

	if (pid > 0 && waitpid(pid, NULL, 0) == pid)
		return;
	while (nr-- && kept)
		free(blocks[--kept]);
	for (int i = 0; i < 10; i++)
		keep(malloc(177), 177);
	for (int i = 0; i < 3; i++)
		free(blocks[--kept]);
	_exit(pid < 0);
}

/* In a child: keep @nr blocks. */
static void spawn_and_wait(unsigned long nr)
{
	pid_t pid = fork();

	if (pid > 0 && waitpid(pid, NULL, 0) == pid)
		return;
	while (nr--)
		keep(malloc(100), 100);
	_exit(pid < 0);
}

/* Without memory of its own. */
static void exec_again(unsigned long nr)
{
	char keeps[64], drops[64];

	snprintf(keeps, sizeof(keeps), "0 keep %lu 50", nr);
	snprintf(drops, sizeof(drops), "0 drop %lu", nr);
	execl("/proc/self/exe", "target", keeps, drops, (char *)NULL);
	_exit(93);
}

static void say_who(void)
{
	for (int a = 0; a < MAX_THREADS; a++) {
		if (given[a].nr)
			say("who %d -1 %lu %lu\n", a, given[a].nr, given[a].bytes);
		for (int f = 0; f < MAX_THREADS; f++)
			if (freed[a][f].nr)
				say("who %d %d %lu %lu\n", a, f, freed[a][f].nr, freed[a][f].bytes);
	}
}

static void work(const struct work *w)
{
	unsigned long first = kept - (w->nr < kept ? w->nr : kept);

	if (!strcmp(w->verb, "tid"))
		say("tid %d\n", gettid());
	if (!strcmp(w->verb, "who"))
		say_who();
	if (!strcmp(w->verb, "fork"))
		fork_and_wait(w->nr);
	if (!strcmp(w->verb, "spawn"))
		spawn_and_wait(w->nr);
	if (!strcmp(w->verb, "exec"))
		exec_again(w->nr);
	if (!strcmp(w->verb, "again"))
		start_numbered(w->nr);
	for (unsigned long i = 0; i < w->nr; i++) {
		if (!strcmp(w->verb, "keep"))
			keep(malloc(w->size), w->size);
		else if (!strcmp(w->verb, "cycle"))
			keep(malloc(w->size + i % w->sizes * w->step),
			     w->size + i % w->sizes * w->step);
		else if (!strcmp(w->verb, "drop") && kept)
			count_free(kept - 1), free(blocks[--kept]), frees++;
		else if (!strcmp(w->verb, "grow"))
			resize(first + i, w->size);
		else if (!strcmp(w->verb, "fail"))
			resize(first + i, (size_t)-1 >> 1);
		else if (!strcmp(w->verb, "map"))
			map_one(w->size);
		else if (!strcmp(w->verb, "unmap"))
			unmap_backwards(w->size);
		else if (!strcmp(w->verb, "threads"))
			start_and_join();
	}
}

static void *run(void *number)
{
	while (1) {
		pthread_barrier_wait(&begin[(long)number]);
		work(&now);
		pthread_barrier_wait(&end);
	}
	return NULL;
}

static void start(long number)
{
	pthread_t thread;

	pthread_barrier_init(&begin[number], NULL, 2);
	if (pthread_create(&thread, NULL, run, (void *)number))
		_exit(95);
	started[number] = 1;
}

static void obey(const char *command)
{
	memset(&now, 0, sizeof(now));
	if (sscanf(command, "%d %15s %lu %lu %lu %lu", &now.thread, now.verb, &now.nr, &now.size,
		   &now.step, &now.sizes) < 3 ||
	    now.thread < 0 || now.thread >= MAX_THREADS)
		_exit(94);
	if (!now.thread) {
		work(&now);
		return;
	}
	if (!started[now.thread])
		start(now.thread);
	pthread_barrier_wait(&begin[now.thread]);
	pthread_barrier_wait(&end);
}

static void obey_stdin(void)
{
	char line[128];
	size_t len = 0;

	while (read(STDIN_FILENO, &line[len], 1) == 1) {
		if (line[len] != '\n') {
			len += len < sizeof(line) - 1;
			continue;
		}
		line[len] = '\0';
		len = 0;
		obey(line);
		say("done\n");
	}
}

int main(int argc, char **argv)
{
	unsigned long live_bytes = 0;

	pthread_barrier_init(&end, NULL, 2);
	for (int i = 1; i < argc; i++)
		obey(argv[i]);
	if (argc == 1)
		obey_stdin();
	for (unsigned long i = 0; i < kept; i++)
		live_bytes += sizes[i];
	say("counts: allocs=%lu alloc_bytes=%lu frees=%lu live=%lu live_bytes=%lu\n", allocs,
	    alloc_bytes, frees, kept, live_bytes);
	return 0;
}
