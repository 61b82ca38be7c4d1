/* growth.c - see growth.h */
#include "report/stats/growth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/prefetch.h"
#include "report/stats/growth_thread.h"

#define FIRST_WIDTH_NS 1000000u

int growth_new(struct growth **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->width_ns = FIRST_WIDTH_NS;
	return 0;
}

static void widen_slices(struct growth *growth)
{
	growth->width_ns *= 2;
	growth->doubled++;
	replaced_widen(&growth->replaced);
	growth_track_widen(&growth->sum);
	for (size_t i = 0; i < growth->nr; i++)
		growth_track_widen(&growth->all[i]);
}

/* The number of the slice that @time_ns is in, which may be one that there is not. */
static uint64_t number_of(const struct growth *growth, uint64_t time_ns)
{
	/* events of different threads may run backwards by some microseconds */
	uint64_t since = time_ns > growth->start_ns ? time_ns - growth->start_ns : 0;

	/* as a division by the width, which takes longer */
	return since / FIRST_WIDTH_NS >> growth->doubled;
}

/* The slice that @time_ns is in. */
static size_t slice_of(struct growth *growth, uint64_t time_ns)
{
	if (!growth->start_ns)
		growth->start_ns = time_ns;
	while (number_of(growth, time_ns) >= GROWTH_SLICES)
		widen_slices(growth);
	return (size_t)number_of(growth, time_ns);
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

static int count_lifetime(struct growth_track *track, struct pool *pool,
			  const struct live_change *change)
{
	uint64_t since = change->block->time_ns, now = change->event->time_ns;

	/* of a sample: what it represents */
	return growth_track_freed(track, pool, now > since ? (now - since) / 1000 : 0,
				  change->more.blocks);
}

/* @blocks come or go, by the slice in which they were allocated. */
static int count_cohort(struct growth *growth, struct growth_track *track,
			const struct live_change *change, int64_t blocks)
{
	uint64_t at = number_of(growth, change->block->time_ns);
	struct growth_slice *slice = growth_track_slice(
		track, &growth->pool, at < GROWTH_SLICES ? (size_t)at : GROWTH_SLICES - 1);

	if (!slice)
		return -ENOMEM;
	if (change->sum == LIVE_ALLOCATED) {
		slice->given++;
		track->blocks += (uint64_t)blocks;
	} else {
		slice->gone += blocks < 0 ? 1 : UINT32_MAX; /* put back: one less */
	}
	return 0;
}

static void release_tracks(struct growth *growth)
{
	pool_release(&growth->pool);
	growth->sum = (struct growth_track){0};
	free(growth->all);
	growth->all = NULL;
	growth->nr = growth->room = 0;
}

/* Memory is short: leave what there is to others. */
static void give_up(struct growth *growth)
{
	growth->failed = true;
	release_tracks(growth);
	replaced_release(&growth->replaced);
}

bool growth_is_allowed(const struct growth *growth)
{
	return !growth->most_bytes || growth->taken + growth->room * sizeof(*growth->all) +
						      growth->nr * sizeof(struct growth_stack) <=
					      growth->most_bytes;
}

/* What is outstanding of @track changes in @slice.  Returns 0 or -ENOMEM. */
static int count_outstanding(struct growth *growth, struct growth_track *track, size_t slice,
			     const struct live_change *change)
{
	const struct live_amount more = live_change_of_outstanding(change);
	int err = 0;

	if (!growth->first_ns)
		growth->first_ns = change->event->time_ns;
	if (more.blocks) /* a part of a mapping is no block */
		err = count_cohort(growth, track, change, (int64_t)more.blocks);
	if (!err)
		err = growth_track_add(track, &growth->pool, slice, more.bytes);
	return err ? err : growth_track_add(&growth->sum, &growth->pool, slice, more.bytes);
}

/* Returns 0 or -ENOMEM. */
static int add_change(struct growth *growth, const struct live_change *change)
{
	const size_t slice = slice_of(growth, change->event->time_ns), nr = growth->nr;
	struct growth_track *track = track_of(growth, change->block->stack);
	size_t before;
	int err = 0;

	if (!track)
		return -ENOMEM;
	before = growth_track_bytes(track);
	if (change->sum == LIVE_FREED)
		err = count_lifetime(track, &growth->pool, change);
	if (!err && (change->sum == LIVE_OUTSTANDING || change->outstanding))
		err = count_outstanding(growth, track, slice, change);
	growth->taken += growth_track_bytes(track) - before;
	if (err || (nr == growth->nr && before == growth_track_bytes(track)))
		return err;
	return growth_is_allowed(growth) ? 0 : -ENOMEM;
}

void growth_take(struct growth *growth, const struct live_change *change)
{
	if (growth->failed)
		return;
	if (change->sum == LIVE_OLDER)
		replaced_changed(&growth->replaced, change,
				 slice_of(growth, change->event ? change->event->time_ns : 0));
	if (change->event &&
	    (change->outstanding || change->sum == LIVE_OUTSTANDING || change->sum == LIVE_FREED) &&
	    add_change(growth, change))
		give_up(growth);
}

void growth_changed(void *arg, const struct live_change *change)
{
	struct growth *growth = arg;

	if (growth->thread)
		growth_thread_changed(growth->thread, change);
	else
		growth_take(growth, change);
}

void growth_use_thread(struct growth *growth)
{
	(void)growth_thread_new(&growth->thread, growth);
}

static void end_thread(struct growth *growth)
{
	growth_thread_end(growth->thread);
	growth->thread = NULL;
}

void growth_expect(const struct growth *growth, uint32_t stack)
{
	if (stack < growth->nr)
		prefetch(&growth->all[stack]);
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
	end_thread(growth);
	growth->slices = slice_of(growth, chosen->end_ns) + 1;
	return growth->failed ? -ENOMEM : settle_replaced(growth, live, chosen, unsized);
}

void growth_free(struct growth *growth)
{
	if (!growth)
		return;
	end_thread(growth);
	replaced_release(&growth->replaced);
	release_tracks(growth);
	free(growth);
}
