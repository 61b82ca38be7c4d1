/* turn_target.c - a full cache and a leak with one call site, and sessions that end at a known age
 *
 * usage: turn_target TICK_US
 *
 * It ticks until stdin ends.  In each tick:
 *   keep_entry    three entries of four go into a full list, whose oldest ones go; the fourth leaks
 *   open_session  ends SESSION_TICKS ticks later
 * Each line of stdin is answered with its ticks, the bytes that leaked so far, and how many ticks it
 * was late at most since the line before.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../say.h"
#include "../ticks.h"

#define F __attribute__((noipa))

enum { LISTED = 600, SESSION_TICKS = 300, ENTRY = 700, SESSION = 1500 };

static void *listed[LISTED], *sessions[SESSION_TICKS];
static unsigned long tick, next_listed, leaked, latest;

F void *get(size_t size)
{
	void *p = malloc(size);

	__asm__ volatile("" ::"r"(p) : "memory");
	return p;
}

F void keep_entry(unsigned long i)
{
	void *p = get(ENTRY), **place = &listed[next_listed % LISTED];

	if (i % 4 == 0) {
		leaked += ENTRY;
		return;
	}
	free(*place);
	*place = p;
	next_listed++;
}

F void open_session(void)
{
	free(sessions[tick % SESSION_TICKS]);
	sessions[tick % SESSION_TICKS] = get(SESSION);
}

static void one_tick(void)
{
	keep_entry(tick);
	open_session();
	tick++;
}

static void answer(void)
{
	say("%lu %lu %lu\n", tick, leaked, latest);
}

int main(int argc, char **argv)
{
	for (unsigned long i = 0; i < LISTED; i++)
		listed[i] = get(ENTRY);
	for (tick = 0; tick < SESSION_TICKS; tick++)
		open_session();
	say("ready\n");
	ticks_run(argc > 1 ? atol(argv[1]) : 1000, &tick, &latest, one_tick, answer);
	return 0;
}
