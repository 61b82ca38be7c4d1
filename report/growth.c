/* growth.c - see growth.h */
#include "report/growth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/array.h"

#define FIRST_WIDTH_NS 1000000u
#define NR_LIFETIMES   45 /* powers of two in microseconds: up to a year */

struct track {
	uint64_t now;		       /* bytes outstanding */
	uint64_t bytes[GROWTH_SLICES]; /* the first nr are filled; in those behind, it was now */
	size_t nr;
	uint64_t lifetimes[NR_LIFETIMES]; /* blocks that lived less than 2^i us, and not less than
					     half of it */
};

struct growth {
	uint64_t start_ns, width_ns;
	size_t slices;
	struct track *all; /* by number of stack */
	size_t nr, room;
	bool failed;
};

int growth_new(struct growth **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->width_ns = FIRST_WIDTH_NS;
	return 0;
}

/* Make one slice of two.  The last one may get only its first half: the rest is to come. */
static void widen(struct growth *growth)
{
	growth->width_ns *= 2;
	for (size_t i = 0; i < growth->nr; i++) {
		struct track *track = &growth->all[i];

		track->nr /= 2;
		for (size_t at = 0; at < track->nr; at++)
			track->bytes[at] = track->bytes[2 * at + 1];
	}
}

/* The slice that @time_ns is in. */
static size_t slice_of(struct growth *growth, uint64_t time_ns)
{
	uint64_t since;

	if (!growth->start_ns)
		growth->start_ns = time_ns;
	/* events of different threads may run backwards by some microseconds */
	since = time_ns > growth->start_ns ? time_ns - growth->start_ns : 0;
	while (since / growth->width_ns >= GROWTH_SLICES)
		widen(growth);
	return (size_t)(since / growth->width_ns);
}

static void fill(struct track *track, size_t nr)
{
	while (track->nr < nr)
		track->bytes[track->nr++] = track->now;
}

static struct track *track_of(struct growth *growth, uint32_t number)
{
	struct track *all;

	if (number < growth->nr)
		return &growth->all[number];
	all = array_grow(growth->all, &growth->room, (size_t)number + 1, sizeof(*all));
	if (!all)
		return NULL;
	growth->all = all;
	memset(&all[growth->nr], 0, ((size_t)number + 1 - growth->nr) * sizeof(*all));
	growth->nr = (size_t)number + 1;
	return &all[number];
}

static void count_lifetime(struct track *track, const struct live_change *change)
{
	const struct live_block *block = change->block;
	uint64_t us = change->event->time_ns > block->time_ns
			      ? (change->event->time_ns - block->time_ns) / 1000
			      : 0;
	int i = 0;

	while (i < NR_LIFETIMES - 1 && us >> i)
		i++;
	track->lifetimes[i] += change->more.blocks; /* of a sample: what it stands for */
}

void growth_changed(void *arg, const struct live_change *change)
{
	struct growth *growth = arg;
	struct track *track;
	size_t slice;

	if (!change->event || (change->sum != LIVE_OUTSTANDING && change->sum != LIVE_FREED))
		return;
	slice = slice_of(growth, change->event->time_ns);
	track = track_of(growth, change->block->stack);
	if (!track) {
		growth->failed = true;
		return;
	}
	if (change->sum == LIVE_FREED) {
		count_lifetime(track, change);
		return;
	}
	fill(track, slice);
	track->now += change->more.bytes;
}

int growth_finish(struct growth *growth, uint64_t end_ns)
{
	growth->slices = slice_of(growth, end_ns) + 1;
	for (size_t i = 0; i < growth->nr; i++)
		fill(&growth->all[i], growth->slices);
	return growth->failed ? -ENOMEM : 0;
}

uint64_t growth_start_ns(const struct growth *growth)
{
	return growth->start_ns;
}

size_t growth_slices(const struct growth *growth)
{
	return growth->slices;
}

uint64_t growth_width_ns(const struct growth *growth)
{
	return growth->width_ns;
}

struct growth_stack growth_of(const struct growth *growth, uint32_t number)
{
	struct growth_stack stack = {0};
	const struct track *track;
	uint64_t all = 0, below = 0;

	if (number >= growth->nr)
		return stack;
	track = &growth->all[number];
	memcpy(stack.bytes, track->bytes, growth->slices * sizeof(*stack.bytes));
	for (int i = 0; i < NR_LIFETIMES; i++)
		all += track->lifetimes[i];
	stack.has_lifetime = all > 0;
	for (int i = 0; i < NR_LIFETIMES && 2 * below < all; i++) {
		below += track->lifetimes[i];
		stack.lifetime_ns = (uint64_t)1000 << i;
	}
	return stack;
}

void growth_free(struct growth *growth)
{
	if (!growth)
		return;
	free(growth->all);
	free(growth);
}
