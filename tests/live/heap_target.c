/* heap_target.c - has blocks of all kinds that glibc's malloc knows, and says which of them are lost
 *
 * heap_target [churn]: prints lines of "WHAT BLOCKS BYTES", where bytes are those that
 * malloc_usable_size() tells, then "in-use 0 BYTES" as mallinfo2() has them, and "ready".  Then it
 * waits until stdin ends; "churn": meanwhile threads allocate and free as fast as they can, beside
 * blocks that they keep.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap_scrub.h"

#define LISTED	10007 /* blocks in lists and cycles */
#define LISTED_BYTES 83
#define KEPT	5003
#define CHURNED 211 /* that a thread has at a time */
#define THREADS 3

struct node {
	struct node *next, *other;
	char rest[LISTED_BYTES - 16];
};

/* A thread's blocks. */
struct worker {
	pthread_t thread;
	void *kept[401];
	void *slots[CHURNED];
	unsigned int seed;
};

static struct node *volatile kept_list;
static void *volatile kept[KEPT], *volatile mapped[7];
static struct worker workers[THREADS];
static atomic_int nr_ready;
static atomic_bool go;
static int churns;

static size_t get_bytes;

/* A block that has no word of what was there before, and its bytes are counted. */
static void *get(size_t bytes)
{
	void *block = calloc(1, bytes);

	get_bytes += malloc_usable_size(block);
	return block;
}

static FRAME void tell(const char *what, size_t blocks)
{
	say("%s %zu %zu\n", what, blocks, get_bytes);
	get_bytes = 0;
}

static FRAME void lose_single(void)
{
	for (int i = 0; i < LEAK_BLOCKS; i++)
		keep(get(LEAK_BYTES));
	AFTER_CALL();
}

/* Lists of 1 to 100 nodes, of which each second one is a cycle. */
static FRAME void lose_lists(void)
{
	size_t left = LISTED, lists = 0;

	for (; left; lists++) {
		size_t length = 1 + lists % 100 < left ? 1 + lists % 100 : left;
		struct node *first = get(sizeof(*first)), *last = first;

		for (left--, length--; length; left--, length--) {
			last->next = get(sizeof(*last));
			last->next->other = last;
			last = last->next;
		}
		if (lists % 2)
			last->next = first;
		keep(first);
	}
	AFTER_CALL();
}

/* Lost, too: each in a mapping of its own. */
static FRAME void lose_mapped(void)
{
	void *aligned;

	for (int i = 0; i < 5; i++)
		keep(get((200u << 10) + 4099u * (unsigned int)i));
	aligned = memalign(64 << 10, 300 << 10);
	get_bytes += malloc_usable_size(aligned);
	keep(aligned);
	AFTER_CALL();
}

static FRAME void keep_some(void)
{
	for (int i = 0; i < KEPT; i++)
		kept[i] = get(1 + (size_t)(i * 37) % 1531);
	for (int i = 0; i < 7; i++)
		mapped[i] = get((150u << 10) + 8209u * (unsigned int)i);
	for (int i = 0; i < 1009; i++) {
		struct node *node = get(sizeof(*node));

		node->next = kept_list;
		kept_list = node;
	}
	AFTER_CALL();
}

/* Blocks of all sizes in between are free: in the thread's cache, fastbins and bins. */
static FRAME void free_some(void)
{
	for (size_t size = 1; size < 4000; size += size / 16 + 7) {
		void *all[31], *between[31];

		for (int i = 0; i < 31; i++) {
			all[i] = malloc(size);
			memset(all[i], 0x5a, size);
			between[i] = calloc(1, 16);
		}
		for (int i = 0; i < 31; i++)
			free(all[i]);
		for (int i = 0; i < 31; i++)
			free(between[i]);
	}
	for (int i = 0; i < 40; i++)
		free(malloc(100u << 10));
	AFTER_CALL();
}

static FRAME void churn_once(struct worker *w)
{
	int at = rand_r(&w->seed) % CHURNED;

	free(w->slots[at]);
	w->slots[at] = malloc(1 + (size_t)rand_r(&w->seed) % (rand_r(&w->seed) % 8 ? 300 : 9000));
	memset(w->slots[at], 0x77, 1);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < 401; i++)
		w->kept[i] = calloc(1, 16 + (size_t)i);
	/* 267 of them stay */
	for (int i = 0; i < 401; i += 3) {
		free(w->kept[i]);
		w->kept[i] = NULL;
	}
	scrub();
	nr_ready++;
	while (!go)
		usleep(1000);
	while (churns)
		churn_once(w);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	struct mallinfo2 info;
	char byte;

	churns = argc > 1 && !strcmp(argv[1], "churn");
	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i].seed = i + 1;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 98;
	}
	while (nr_ready < THREADS)
		usleep(1000);
	keep_some();
	tell("kept", KEPT + 7 + 1009);
	lose_single();
	tell("single", LEAK_BLOCKS);
	free_some();
	lose_lists();
	tell("listed", LISTED);
	free_some();
	lose_mapped();
	tell("mapped", 6);
	scrub();
	info = mallinfo2();
	say("in-use 0 %zu\n", info.uordblks);
	say("ready\n");
	scrub();
	go = true;
	return read(STDIN_FILENO, &byte, 1) < 0;
}
