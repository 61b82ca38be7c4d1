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

bool replay_knows_older(const struct replay *leaks, const struct mlk_meta *meta)
{
	return meta->whole_life || !leaks->condition.losses.skipped[MLK_SKIPPED_FREE];
}
