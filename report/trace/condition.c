/* condition.c - see condition.h */
#include "report/trace/condition.h"

static void keep_larger(uint64_t *all, uint64_t pass)
{
	if (pass > *all)
		*all = pass;
}

void condition_merge(struct mlk_condition *all, const struct mlk_condition *pass)
{
	keep_larger(&all->chunks, pass->chunks);
	keep_larger(&all->chunks_lost, pass->chunks_lost);
	if (pass->lost_to_ns && (!all->lost_to_ns || pass->lost_from_ns < all->lost_from_ns))
		all->lost_from_ns = pass->lost_from_ns;
	keep_larger(&all->lost_to_ns, pass->lost_to_ns);
	keep_larger(&all->bytes_skipped, pass->bytes_skipped);
	keep_larger(&all->chunks_unknown, pass->chunks_unknown);
	keep_larger(&all->unwound_unused, pass->unwound_unused);
	all->index_lied |= pass->index_lied;
	keep_larger(&all->end_ns, pass->end_ns);
	keep_larger(&all->last_ns, pass->last_ns);
	for (int kind = 0; kind < MLK_LOSS_NR; kind++)
		keep_larger(&all->losses.count[kind], pass->losses.count[kind]);
	keep_larger(&all->losses.nr_kinds, pass->losses.nr_kinds);
	for (int kind = 0; kind < MLK_SKIP_NR; kind++) {
		keep_larger(&all->losses.skipped[kind], pass->losses.skipped[kind]);
		keep_larger(&all->losses.skipped_bytes[kind], pass->losses.skipped_bytes[kind]);
	}
	if (pass->ended) {
		all->ended = true;
		all->reason = pass->reason;
		all->end_ns = pass->end_ns;
	}
}
