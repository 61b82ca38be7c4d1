/* growth.c - see growth.h */
#include "report/stats/growth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"

#define FIRST_WIDTH_NS 1000000u

int growth_new(struct growth **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->width_ns = FIRST_WIDTH_NS;
	return 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Make one slice of two.  The last one may get only its first half: the rest is to come. */
static void widen_track(struct growth_track *track)
{
	if (track->nr % 2)
		track->top = larger(track->top, track->most[track->nr - 1]);
	track->nr /= 2;
	for (size_t at = 0; at < track->nr; at++) {
		track->bytes[at] = track->bytes[2 * at + 1];
		track->most[at] = larger(track->most[2 * at], track->most[2 * at + 1]);
	}
}

static void widen_slices(struct growth *growth)
{
	growth->width_ns *= 2;
	widen_track(&growth->sum);
	for (size_t i = 0; i < growth->nr; i++)
		widen_track(&growth->all[i]);
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
		widen_slices(growth);
	return (size_t)(since / growth->width_ns);
}

static void fill_track(struct growth_track *track, size_t nr)
{
	for (; track->nr < nr; track->nr++) {
		track->bytes[track->nr] = track->now;
		track->most[track->nr] = track->top;
		track->top = track->now;
	}
}

/* There are @more bytes outstanding, modulo 2^64, in slice @slice or later. */
static void add_to_track(struct growth_track *track, size_t slice, uint64_t more)
{
	fill_track(track, slice);
	track->now += more;
	track->top = larger(track->top, track->now);
}

static struct growth_track *track_of(struct growth *growth, uint32_t number)
{
	if (number < growth->nr)
		return &growth->all[number];
	if (array_cover(&growth->all, &growth->room, (size_t)number + 1, sizeof(*growth->all)))
		return NULL;
	growth->nr = (size_t)number + 1;
	return &growth->all[number];
}

static void count_lifetime(struct growth_track *track, const struct live_change *change)
{
	const struct live_block *block = change->block;
	uint64_t us = change->event->time_ns > block->time_ns
			      ? (change->event->time_ns - block->time_ns) / 1000
			      : 0;
	int i = 0;

	while (i < GROWTH_LIFETIMES - 1 && us >> i)
		i++;
	track->lifetimes[i] += change->more.blocks; /* of a sample: what it represents */
}

void growth_changed(void *arg, const struct live_change *change)
{
	bool outstanding = change->sum == LIVE_OUTSTANDING || change->outstanding;
	uint64_t more = live_change_of_outstanding(change).bytes;
	struct growth *growth = arg;
	struct growth_track *track;
	size_t slice;

	if (!change->event || (!outstanding && change->sum != LIVE_FREED))
		return;
	slice = slice_of(growth, change->event->time_ns);
	track = track_of(growth, change->block->stack);
	if (!track) {
		growth->failed = true;
		return;
	}
	if (change->sum == LIVE_FREED)
		count_lifetime(track, change);
	if (!outstanding)
		return;
	add_to_track(track, slice, more);
	add_to_track(&growth->sum, slice, more);
}

int growth_finish(struct growth *growth, uint64_t end_ns)
{
	growth->slices = slice_of(growth, end_ns) + 1;
	for (size_t i = 0; i < growth->nr; i++)
		fill_track(&growth->all[i], growth->slices);
	fill_track(&growth->sum, growth->slices);
	return growth->failed ? -ENOMEM : 0;
}

/* What a stack is, without its lifetimes. */
static struct growth_stack sums_of(const struct growth *growth, const struct growth_track *track)
{
	struct growth_stack stack = {0};

	memcpy(stack.bytes, track->bytes, growth->slices * sizeof(*stack.bytes));
	memcpy(stack.most, track->most, growth->slices * sizeof(*stack.most));
	return stack;
}

struct growth_stack growth_of_all(const struct growth *growth)
{
	return sums_of(growth, &growth->sum);
}

struct growth_stack growth_of(const struct growth *growth, uint32_t number)
{
	struct growth_stack stack = {0};
	const struct growth_track *track;
	uint64_t all = 0, below = 0;

	if (number >= growth->nr)
		return stack;
	track = &growth->all[number];
	stack = sums_of(growth, track);
	for (int i = 0; i < GROWTH_LIFETIMES; i++)
		all += track->lifetimes[i];
	stack.has_lifetime = all > 0;
	for (int i = 0; i < GROWTH_LIFETIMES && 2 * below < all; i++) {
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
