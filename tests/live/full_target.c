/* full_target.c - a full cache whose entries outlive any recording of it, and a leak if asked for
 *
 * usage: full_target TICK_US [LEAKS]
 *
 * It ticks until stdin ends.  In each tick:
 *   replace_entry  three entries take the places of the oldest ones
 *   leak_entry     so many entries are forgotten
 *   use_scratch    what is small lives for a moment
 * Each line of stdin is answered with its ticks, the bytes that leaked so far, and how many ticks it
 * was late at most since the line before.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../say.h"
#include "../ticks.h"

#define F __attribute__((noipa))

enum { PLACES = 200000, ENTRY = 700, LEAKED = 300, SCRATCH = 40 };

static void *places[PLACES];
static unsigned long tick, next_place, leaks_a_tick, leaked, latest;

F void *get(size_t size)
{
	void *p = malloc(size);

	__asm__ volatile("" ::"r"(p) : "memory");
	return p;
}

F void replace_entry(void)
{
	void **place = &places[next_place++ % PLACES], *old = *place;

	*place = get(ENTRY);
	free(old);
}

F void leak_entry(void)
{
	get(LEAKED);
	leaked += LEAKED;
}

F void use_scratch(void)
{
	free(get(SCRATCH));
}

static void one_tick(void)
{
	for (int i = 0; i < 3; i++)
		replace_entry();
	for (unsigned long i = 0; i < leaks_a_tick; i++)
		leak_entry();
	use_scratch();
	tick++;
}

static void answer(void)
{
	say("%lu %lu %lu\n", tick, leaked, latest);
}

int main(int argc, char **argv)
{
	leaks_a_tick = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	while (next_place < PLACES)
		replace_entry();
	say("ready\n");
	ticks_run(argc > 1 ? strtol(argv[1], NULL, 10) : 1000, &tick, &latest, one_tick, answer);
	return 0;
}
