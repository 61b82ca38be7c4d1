/* live_pages.c - which pieces of mappings need memory: they are in use, reserved or given back
 *
 * Pieces of one mapping that lie side by side, and are in the same use, are one block: so a heap
 * that gives pages back and uses them again does not fall into ever more pieces.
 */
#include <errno.h>

#include "report/live/live_state.h"

/* The sum of pieces in @use, which are not outstanding. */
static struct live_amount *sum_of(struct live *live, unsigned int use)
{
	return use == LIVE_RESERVED ? &live->totals.reserved : &live->totals.given_back;
}

void live_add_piece(struct live *live, const struct live_block *piece)
{
	if (piece->use == LIVE_IN_USE)
		live_add(live, LIVE_OUTSTANDING, piece);
	else
		live_amount_add(sum_of(live, piece->use), sampling_amount(piece));
}

void live_subtract_piece(struct live *live, const struct live_block *piece)
{
	struct live_amount less = sampling_amount(piece);

	if (piece->use == LIVE_IN_USE)
		live_subtract(live, LIVE_OUTSTANDING, piece);
	else
		live_amount_add(sum_of(live, piece->use),
				(struct live_amount){0 - less.blocks, 0 - less.bytes});
}

/* Are both pieces of one mapping, in the same use?  A thread maps one at a time. */
static bool belong_together(const struct live_block *a, const struct live_block *b)
{
	return a->use == b->use && a->time_ns == b->time_ns && a->tid == b->tid &&
	       a->stack == b->stack && a->weight == b->weight;
}

/* Take a piece at @addr that @piece is to become one with out of the map, and make it so.  Returns
 * whether there is one. */
static bool join(struct live *live, struct process *process, uint64_t addr,
		 struct live_block *piece)
{
	const struct live_block *there = range_map_last(&process->ranges, addr, addr + 1);
	struct live_block other;

	if (!there || !belong_together(there, piece) ||
	    !range_map_take(&process->ranges, addr, addr + 1, &other))
		return false;
	live_subtract_piece(live, &other);
	piece->addr = other.addr < piece->addr ? other.addr : piece->addr;
	piece->size += other.size;
	return true;
}

/* @cut, which was in another use, is in @use from now on. */
static int change_piece(struct live *live, struct process *process, struct live_block cut,
			enum live_use use)
{
	struct live_block whole;
	int joined;

	if (use != LIVE_IN_USE)
		live_add_part(live, LIVE_FREED, &cut);
	cut.use = use;
	cut.part = false;
	whole = cut;
	joined = cut.addr && join(live, process, cut.addr - 1, &whole);
	joined += range_end(&cut) < UINT64_MAX && join(live, process, range_end(&cut), &whole);
	if (use == LIVE_IN_USE) {
		cut.part = joined;
		live_add_part(live, LIVE_ALLOCATED, &cut);
		if (joined == 2) /* two blocks are one */
			live_add_block(live, LIVE_FREED, &cut);
	}
	return live_put_piece(live, process, &whole, whole.addr, range_end(&whole));
}

/* What is in use @from of [@start, @end) is in use @to from now on.  Returns 0 or -ENOMEM. */
static int change_use(struct live *live, struct process *process, uint64_t start, uint64_t end,
		      enum live_use from, enum live_use to)
{
	const struct live_block *piece;
	struct live_block cut;
	int err = 0;

	while (start < end && !err && (piece = range_map_last(&process->ranges, start, end))) {
		uint64_t begins = piece->addr > start ? piece->addr : start;

		if (piece->use == from) {
			err = live_cut_range(live, process, begins, end, &cut);
			err = err < 0 ? err : change_piece(live, process, cut, to);
		}
		end = begins;
	}
	return err;
}

int live_on_pages(struct live *live, struct process *process, const struct mlk_event *event)
{
	uint64_t end = live_end_of_pages(event);

	switch (event->func) {
	case MLK_PAGES_ACCESSIBLE:
		return change_use(live, process, event->addr, end, LIVE_RESERVED, LIVE_IN_USE);
	case MLK_PAGES_GIVEN_BACK:
	case MLK_PAGES_LAZILY:
		return change_use(live, process, event->addr, end, LIVE_IN_USE, LIVE_GIVEN_BACK);
	case MLK_PAGES_RESIDENT:
		return change_use(live, process, event->addr, end, LIVE_GIVEN_BACK, LIVE_IN_USE);
	default:
		return 0;
	}
}
