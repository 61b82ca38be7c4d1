/* older_frees.c - what a trace tells of frees of blocks from before it: see replay.h */
#include "report/live/sampling.h"
#include "report/replay/replay.h"

uint64_t replay_older_in_sample(const struct replay *leaks, const struct mlk_meta *meta)
{
	const uint64_t *skipped = leaks->condition.losses.skipped;
	const struct live_totals *totals = &leaks->totals;
	struct sampling sampling = sampling_of(meta);
	double more, frees;

	if (meta->whole_life || !sampling_is_on(&sampling))
		return 0;
	/* what the blocks in the trace stand for is skipped, but for themselves */
	more = (double)skipped[MLK_SKIPPED_FREE];
	frees = (double)totals->freed.blocks * (double)skipped[MLK_SKIPPED_SAMPLE] /
		(double)(totals->allocated.blocks ? totals->allocated.blocks : 1);
	return more > frees ? (uint64_t)(more - frees) : 0;
}

/* What was left out on purpose, but for the sample, is taken to be freed in time: so many of the
 * frees at least are those of older blocks. */
uint64_t replay_older_unsized(const struct replay *leaks, const struct mlk_meta *meta)
{
	const uint64_t *skipped = leaks->condition.losses.skipped;
	struct sampling sampling = sampling_of(meta);
	uint64_t frees = skipped[MLK_SKIPPED_FREE], others;

	if (meta->whole_life)
		return 0;
	if (sampling_is_on(&sampling))
		frees = replay_older_in_sample(leaks, meta);
	others = skipped[MLK_SKIPPED_SIZE] + skipped[MLK_SKIPPED_TRIGGER] +
		 skipped[MLK_SKIPPED_DELAY];
	return frees > others ? frees - others : 0;
}

bool replay_knows_older(const struct replay *leaks, const struct mlk_meta *meta)
{
	return meta->whole_life || !leaks->condition.losses.skipped[MLK_SKIPPED_FREE];
}

bool replay_knows_all(const struct replay *leaks, const struct mlk_meta *meta)
{
	const struct mlk_condition *c = &leaks->condition;
	uint64_t lost = c->chunks_lost;

	for (int i = 0; i < MLK_LOSS_NR; i++)
		lost += i == MLK_LOST_MODULE ? 0 : c->losses.count[i];
	for (int i = 0; i < MLK_SKIP_NR; i++)
		lost += i == MLK_SKIPPED_CHILD ? 0 : c->losses.skipped[i];
	return meta->whole_life && !lost && meta->sample_every < 2 && !meta->sample_bytes;
}
