/* suspect_blocks.c - see suspect_blocks.h */
#include "report/live/suspect_blocks.h"

static void keep_later(uint64_t *ns, uint64_t other)
{
	if (other > *ns)
		*ns = other;
}

static void note_from(struct suspect_blocks *s, uint64_t ns)
{
	if (!s->any || ns < s->from_ns)
		s->from_ns = ns;
	s->any = true;
}

/* Is @kind of @losses one by which blocks of before an exec look leaked?  What a program or process
 * that was not recorded did, touches nobody else's; but older writers count the notices with them.
 */
static bool hides_execs(const struct mlk_losses *losses, int kind)
{
	return kind == MLK_LOST_NOTICE ||
	       (kind == MLK_LOST_EXEC && losses->nr_kinds <= MLK_LOST_NOTICE);
}

/* Which blocks a loss of @kind leaves in doubt. */
static bool hides_frees(const struct mlk_losses *losses, int kind)
{
	return kind == MLK_LOST_FREE || kind == MLK_LOST_RELEASE || hides_execs(losses, kind);
}

static bool hides_unmaps(const struct mlk_losses *losses, int kind)
{
	return kind == MLK_LOST_UNMAP || hides_execs(losses, kind);
}

/* Did what was lost from @first_ns on come too late to matter? */
static bool is_late(const struct suspect_blocks *s, uint64_t first_ns)
{
	return s->stop_ns && first_ns > s->stop_ns;
}

/* Losses beyond those met before ended at @ns at the latest, and began at @first_ns, or 0. */
static void take_losses(struct suspect_blocks *s, const struct mlk_losses *losses,
			uint64_t first_ns, uint64_t ns)
{
	for (int kind = 0; kind < MLK_LOSS_NR; kind++) {
		uint64_t before = s->met.count[kind];

		if (losses->count[kind] <= before)
			continue;
		s->met.count[kind] = losses->count[kind];
		if (is_late(s, first_ns))
			continue;
		s->in_time[kind] += losses->count[kind] - before;
		if (hides_frees(losses, kind) || hides_unmaps(losses, kind))
			note_from(s, first_ns);
		if (hides_frees(losses, kind))
			keep_later(&s->heap_ns, ns);
		if (hides_unmaps(losses, kind))
			keep_later(&s->mapped_ns, ns);
	}
}

void suspect_blocks_read(struct suspect_blocks *s, const struct mlk_losses *losses)
{
	/* 1.0 gave no time */
	take_losses(s, losses, losses->first_ns, losses->last_ns ? losses->last_ns : UINT64_MAX);
}

void suspect_blocks_finish(struct suspect_blocks *s, const struct mlk_condition *c)
{
	/* The record with their time was cut off or damaged: only a chunk's header counts them.
	 */
	take_losses(s, &c->losses, 0, UINT64_MAX);
	if (is_late(s, c->lost_from_ns))
		return;
	s->chunks = c->chunks_lost > 0;
	keep_later(&s->heap_ns, c->lost_to_ns);
	keep_later(&s->mapped_ns, c->lost_to_ns);
	if (c->lost_to_ns)
		note_from(s, c->lost_from_ns);
}

bool suspect_blocks_times(const struct suspect_blocks *s, uint64_t *from_ns, uint64_t *to_ns)
{
	*from_ns = s->from_ns;
	*to_ns = s->heap_ns > s->mapped_ns ? s->heap_ns : s->mapped_ns;
	return s->any && *from_ns && *to_ns != UINT64_MAX;
}

bool suspect_blocks_is(const struct suspect_blocks *s, const struct live_block *block)
{
	uint64_t until = block->mapped ? s->mapped_ns : s->heap_ns;

	return until && block->time_ns <= until;
}
