/* inject_state.h - struct inject, for the files that implement inject.h */
#ifndef RECORD_INJECT_STATE_H
#define RECORD_INJECT_STATE_H

#include <stdint.h>

#include "record/inject/image.h"
#include "record/inject/inject.h"
#include "record/inject/plan.h"
#include "record/inject/there.h"

/* The addresses are the target's. */
struct inject {
	pid_t pid;
	int turn; /* see turn.h; -1: it is over */
	int mem;  /* /proc/PID/mem */
	struct inject_file code, rings;
	struct image image;
	uint64_t base;	 /* of the image in the target; its memory lies behind it */
	uint64_t shared; /* of the rings */
	size_t shared_bytes;
	struct maps maps;	    /* before anything was mapped */
	char *why;		    /* the caller's, during a call, */
	const struct allocators *a; /* and this */
	struct inject_plan plan;
	struct inject_cost cost; /* so far */
};

/* Where the island @n is in the file of the code. */
static inline uint64_t island_offset(const struct inject *i, size_t n)
{
	return i->image.all_bytes + n * INJECT_ISLAND;
}

/* The addresses of image and memory, in one piece. */
static inline uint64_t block_bytes(const struct inject *i)
{
	return i->image.all_bytes + i->image.memory_bytes;
}

/* What follows returns 0, or -errno with the reason in @i->why: places.c. */

/* Make both files, and open them here. */
int inject_make_files(struct inject *i);

/* Find where the islands can be. */
int inject_find_islands(struct inject *i);

/* Take the addresses of the image and the islands, which so far nobody can use, and map the rings.
 */
int inject_take_places(struct inject *i);

/* Put what the file of the code has there at those places, and close the files there. */
int inject_fill_places(struct inject *i);

#endif
