/* live_load.c - allocate at a given rate until so many blocks live, then replace them at that rate
 *
 * usage: live_load EVENTS_PER_SECOND SECONDS BLOCKS
 *
 * Prints "ready", begins with a line on stdin, prints how many blocks it allocated, freed and
 * holds, and ends with its stdin.  Allocations and frees are events; there are 64 call paths, 12 to
 * 20 frames deep.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../say.h"

#define TICK_NS 1000000L
#define FRAME	__attribute__((noinline, noipa))

static void **blocks;
static size_t room, nr, oldest;
static unsigned long allocated, freed;

FRAME static void *take(size_t bytes)
{
	void *block = malloc(bytes);

	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}

FRAME static void *left(unsigned int path, unsigned int depth);

FRAME static void *right(unsigned int path, unsigned int depth)
{
	void *block = depth ? path & 1 ? left(path >> 1, depth - 1) : right(path >> 1, depth - 1)
			    : take(48);

	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}

FRAME static void *left(unsigned int path, unsigned int depth)
{
	void *block = depth ? path & 1 ? left(path >> 1, depth - 1) : right(path >> 1, depth - 1)
			    : take(64);

	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}

/* One event: an allocation as long as there is room, then a free and an allocation by turns. */
static void do_event(void)
{
	unsigned int path = (unsigned int)(allocated % 64);

	if (nr == room) {
		free(blocks[oldest]);
		blocks[oldest] = blocks[--nr];
		oldest = (oldest + 7919) % nr;
		freed++;
		return;
	}
	blocks[nr++] = left(path, 12 + path % 8);
	allocated++;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void run(double rate, double seconds)
{
	const struct timespec tick = {.tv_nsec = TICK_NS};
	double start = now(), at;
	unsigned long done = 0;

	while ((at = now() - start) < seconds) {
		while ((double)done < at * rate) {
			do_event();
			done++;
		}
		nanosleep(&tick, NULL);
	}
}

int main(int argc, char **argv)
{
	char line[16];

	if (argc != 4)
		return 2;
	room = strtoul(argv[3], NULL, 10);
	blocks = malloc(room * sizeof(*blocks));
	if (!room || !blocks)
		return 2;
	say("ready\n");
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	run(strtod(argv[1], NULL), strtod(argv[2], NULL));
	say("allocated %lu freed %lu live %zu\n", allocated, freed, nr);
	while (fgets(line, sizeof(line), stdin))
		;
	return 0;
}
