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

static void widen_cohorts(uint32_t cohorts[GROWTH_SLICES])
{
	for (size_t at = 0; at < GROWTH_SLICES; at++)
		cohorts[at] = at < GROWTH_SLICES / 2 ? cohorts[2 * at] + cohorts[2 * at + 1] : 0;
}

static void widen_slices(struct growth *growth)
{
	growth->width_ns *= 2;
	replaced_widen(&growth->replaced);
	widen_track(&growth->sum);
	for (size_t i = 0; i < growth->nr; i++) {
		widen_track(&growth->all[i]);
		widen_cohorts(growth->all[i].given);
		widen_cohorts(growth->all[i].gone);
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
	if (growth->most_bytes &&
	    ((uint64_t)number + 1) * sizeof(*growth->all) > growth->most_bytes)
		return NULL;
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
	int i = us ? 64 - __builtin_clzll(us) : 0, part;

	if (i > GROWTH_LIFETIMES - 1)
		i = GROWTH_LIFETIMES - 1;
	track->lifetimes[i] += change->more.blocks; /* of a sample: what it represents */
	/* behind the leading bit of the time */
	part = (int)((i ? us << GROWTH_PART_BITS >> (i - 1) : 0) % GROWTH_PARTS);
	if (++track->parts[i][part] == UINT8_MAX)
		for (int at = 0; at < GROWTH_PARTS; at++)
			track->parts[i][at] /= 2;
}

/* Blocks come and go by the slice in which they were allocated; a part of a mapping is no block. */
static void count_cohort(const struct growth *growth, struct growth_track *track,
			 const struct live_change *change)
{
	int64_t blocks = (int64_t)live_change_of_outstanding(change).blocks;
	uint64_t time_ns = change->block->time_ns;
	uint64_t slice =
		time_ns > growth->start_ns ? (time_ns - growth->start_ns) / growth->width_ns : 0;

	if (!blocks)
		return;
	slice = slice < GROWTH_SLICES ? slice : GROWTH_SLICES - 1;
	if (change->sum == LIVE_ALLOCATED) {
		track->given[slice]++;
		track->blocks += (uint64_t)blocks;
	} else {
		track->gone[slice] += blocks < 0 ? 1 : UINT32_MAX; /* put back: one less */
	}
}

/* Memory is short: leave what there is to others. */
static void give_up(struct growth *growth)
{
	growth->failed = true;
	free(growth->all);
	growth->all = NULL;
	growth->nr = growth->room = 0;
	replaced_release(&growth->replaced);
}

void growth_changed(void *arg, const struct live_change *change)
{
	bool outstanding = change->sum == LIVE_OUTSTANDING || change->outstanding;
	uint64_t more = live_change_of_outstanding(change).bytes;
	struct growth *growth = arg;
	struct growth_track *track;
	size_t slice;

	if (growth->failed)
		return;
	if (change->sum == LIVE_OLDER)
		replaced_changed(&growth->replaced, change,
				 slice_of(growth, change->event ? change->event->time_ns : 0));
	if (!change->event || (!outstanding && change->sum != LIVE_FREED))
		return;
	slice = slice_of(growth, change->event->time_ns);
	track = track_of(growth, change->block->stack);
	if (!track) {
		give_up(growth);
		return;
	}
	if (change->sum == LIVE_FREED)
		count_lifetime(track, change);
	if (!outstanding)
		return;
	count_cohort(growth, track, change);
	if (!growth->first_ns)
		growth->first_ns = change->event->time_ns;
	add_to_track(track, slice, more);
	add_to_track(&growth->sum, slice, more);
}

/* The share of its blocks that was freed at a great age. */
static double old_share(const struct growth *growth, const struct growth_track *track)
{
	double frees = (double)growth_frees(track, growth_first_old(growth, 16));

	return track->blocks ? frees / (double)track->blocks : 0;
}

static int settle_replaced(struct growth *growth, const struct live *live,
			   const struct chosen *chosen, uint64_t unsized)
{
	double *turnover = calloc(growth->nr + 1, sizeof(*turnover));
	int err = turnover ? 0 : -ENOMEM;

	growth->replaced.start_ns = growth->start_ns;
	growth->replaced.width_ns = growth->width_ns;
	for (size_t i = 0; i < growth->nr && !err; i++)
		turnover[i] = old_share(growth, &growth->all[i]);
	if (!err)
		err = replaced_finish(&growth->replaced, live, chosen, turnover, growth->nr,
				      unsized);
	free(turnover);
	return err;
}

int growth_finish(struct growth *growth, const struct live *live, const struct chosen *chosen,
		  uint64_t unsized)
{
	growth->slices = slice_of(growth, chosen->end_ns) + 1;
	for (size_t i = 0; i < growth->nr; i++)
		fill_track(&growth->all[i], growth->slices);
	fill_track(&growth->sum, growth->slices);
	return growth->failed ? -ENOMEM : settle_replaced(growth, live, chosen, unsized);
}

void growth_free(struct growth *growth)
{
	if (!growth)
		return;
	replaced_release(&growth->replaced);
	free(growth->all);
	free(growth);
}
