/* grow_target.c - a daemon with two leaks among things that only look like leaks
 *
 * usage: grow_target TICK_US
 *
 * It ticks until stdin ends, and counts what its leaks have outstanding.  In each tick:
 *   leak_entry    an entry is forgotten, of the size of a table's row: a leak
 *   leak_rarely   in one of 16: a leak of large blocks
 *   fill_cache    entries go into slots by chance, most of which are empty at first
 *   use_bounded   the oldest entries of a full list go
 *   replace_row   rows of a full table are replaced by chance
 *   open_session  ends 250 ticks later
 *   use_arena     chunks of 64 KiB, all given back each 100 ticks
 * configure() is called once, at the end of its warm-up, behind which it says "ready".
 *
 * Each line of stdin is answered with its ticks, what the leaks have allocated so far, in blocks and
 * bytes, and how many ticks it was late at most since the line before.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../say.h"
#include "../ticks.h"

#define F __attribute__((noipa))

enum {
	ROWS = 1500,
	SLOTS = 6000,
	LISTED = 900,
	SESSION_TICKS = 250,
	ARENA_TICKS = 100,
	CHUNK = 65536,
	MAX_CHUNKS = 64,
	ROW = 112,
	LARGE = 3000,
};

static void *rows[ROWS], *slots[SLOTS], *listed[LISTED], *sessions[SESSION_TICKS];
static char *chunks[MAX_CHUNKS];
static void *config[8];
static unsigned long tick, next_listed, nr_chunks, chunk_used;
static unsigned long small_leaks, large_leaks, latest;
static unsigned int seed = 7;

F void *get(size_t size)
{
	void *p = malloc(size);

	__asm__ volatile("" ::"r"(p) : "memory");
	return p;
}

F void leak_entry(void)
{
	get(ROW);
	small_leaks++;
}

F void leak_rarely(void)
{
	get(LARGE);
	large_leaks++;
}

F void fill_cache(void)
{
	unsigned int at = (unsigned int)rand_r(&seed) % SLOTS;

	free(slots[at]);
	slots[at] = get(500);
}

F void use_bounded(void)
{
	void *old = listed[next_listed % LISTED];

	listed[next_listed++ % LISTED] = get(200);
	free(old);
}

F void replace_row(void)
{
	unsigned int at = (unsigned int)rand_r(&seed) % ROWS;

	free(rows[at]);
	rows[at] = get(ROW);
}

F void open_session(void)
{
	free(sessions[tick % SESSION_TICKS]);
	sessions[tick % SESSION_TICKS] = get(900);
}

F void new_chunk(void)
{
	chunks[nr_chunks++] = get(CHUNK);
	chunk_used = 0;
}

F void use_arena(void)
{
	if (tick % ARENA_TICKS == 0) {
		while (nr_chunks)
			free(chunks[--nr_chunks]);
		chunk_used = CHUNK;
	}
	chunk_used += 12000;
	if (chunk_used > CHUNK)
		new_chunk();
}

F void configure(void)
{
	for (int i = 0; i < 8; i++)
		config[i] = get(5000);
}

F void one_tick(void)
{
	leak_entry();
	if (tick % 16 == 0)
		leak_rarely();
	for (int i = 0; i < 3; i++) {
		fill_cache();
		use_bounded();
		replace_row();
	}
	open_session();
	use_arena();
	tick++;
}

/* Fill what is full before anybody looks: a table, a list, sessions, and some of the cache. */
static void warm_up(void)
{
	for (unsigned int i = 0; i < ROWS; i++)
		rows[i] = get(ROW);
	for (unsigned int i = 0; i < LISTED; i++)
		use_bounded();
	for (unsigned int i = 0; i < 100; i++)
		fill_cache();
	for (tick = 0; tick < SESSION_TICKS; tick++)
		open_session();
	configure();
}

static void answer(void)
{
	say("%lu %lu %lu %lu %lu\n", tick, small_leaks, large_leaks,
	    small_leaks * ROW + large_leaks * LARGE, latest);
}

int main(int argc, char **argv)
{
	warm_up();
	say("ready\n");
	ticks_run(argc > 1 ? atol(argv[1]) : 1000, &tick, &latest, one_tick, answer);
	return 0;
}
