/* live_sums.c - the sums of blocks, and what changes them: see live_state.h */
#include "report/live/live_state.h"

#define MOST_OLDER (1u << 20) /* older blocks in a process whose sizes are waited for */

/* by enum live_sum */
static const size_t offsets[] = {
	offsetof(struct live_totals, allocated),   offsetof(struct live_totals, freed),
	offsetof(struct live_totals, outstanding), offsetof(struct live_totals, implied),
	offsetof(struct live_totals, gone),	   offsetof(struct live_totals, older)};

/* Add so many blocks and bytes of @block to a sum; to subtract, what is added wraps. */
static void count(struct live *live, enum live_sum sum, const struct live_block *block,
		  struct live_amount more, const struct live_block *older)
{
	struct live_change change = {
		.sum = sum, .block = block, .event = live->event, .more = more, .older = older};
	struct live_amount *amount = (void *)((char *)&live->totals + offsets[sum]);

	live_amount_add(amount, more);
	if (live->watch.changed)
		live->watch.changed(live->watch.arg, &change);
}

/* Nearly all that happens are these two, so each is told at once. */

static void tell_both(struct live *live, enum live_sum sum, const struct live_block *block,
		      struct live_amount more)
{
	const struct live_change change = {.sum = sum,
					   .outstanding = true,
					   .block = block,
					   .event = live->event,
					   .more = more};

	if (live->watch.changed)
		live->watch.changed(live->watch.arg, &change);
}

void live_give(struct live *live, const struct live_block *block)
{
	struct live_totals *totals = &live->totals;
	struct live_amount more = sampling_amount(block);

	live_amount_add(&totals->allocated, more);
	live_amount_add(&totals->outstanding, more);
	tell_both(live, LIVE_ALLOCATED, block, more);
}

void live_free_block(struct live *live, const struct live_block *block)
{
	struct live_totals *totals = &live->totals;
	struct live_amount less = sampling_amount(block);

	totals->outstanding.blocks -= less.blocks;
	totals->outstanding.bytes -= less.bytes;
	live_amount_add(&totals->freed, less);
	tell_both(live, LIVE_FREED, block, less);
}

void live_add(struct live *live, enum live_sum sum, const struct live_block *block)
{
	count(live, sum, block, sampling_amount(block), NULL);
}

void live_subtract(struct live *live, enum live_sum sum, const struct live_block *block)
{
	struct live_amount less = sampling_amount(block);

	count(live, sum, block, (struct live_amount){0 - less.blocks, 0 - less.bytes}, NULL);
}

void live_add_block(struct live *live, enum live_sum sum, const struct live_block *block)
{
	count(live, sum, block, (struct live_amount){sampling_amount(block).blocks, 0}, NULL);
}

void live_add_part(struct live *live, enum live_sum sum, const struct live_block *block)
{
	struct live_amount more = sampling_amount(block);

	count(live, sum, block, (struct live_amount){block->part ? 0 : more.blocks, more.bytes},
	      NULL);
}

void live_expect_older(struct live *live)
{
	live->may_have_older = true;
}

void live_count_older(struct live *live, struct process *process, uint64_t addr, uint32_t tid)
{
	struct last_given *given = &process->given[tid % LIVE_LAST_GIVEN];
	struct live_block older = {.addr = addr,
				   .tgid = process->tgid,
				   .time_ns = live->event ? live->event->time_ns : 0};

	if (freed_set_has(&process->freed, addr)) {
		live->totals.freed_again++;
		return;
	}
	live->totals.unknown_frees++;
	live_note_freed(live, process, addr);
	if (process->inherits || process->older.nr_blocks >= MOST_OLDER)
		return;
	if (given->tid && given->tid == tid) {
		older.known = true;
		older.tid = tid;
		older.stack = given->stack;
		older.size = given->size;
	}
	given->tid = 0;
	process->frees_older = true;
	/* a size that is not known is no reason to have no report */
	block_map_put(&process->older, addr, &older);
}

void live_size_older(struct live *live, struct process *process, const struct live_block *block)
{
	struct live_block older;

	if (!process->frees_older)
		return;
	process->given[block->tid % LIVE_LAST_GIVEN] =
		(struct last_given){block->size, block->tid, block->stack};
	if (block_map_take(&process->older, block->addr, &older))
		count(live, LIVE_OLDER, block, (struct live_amount){1, block->size}, &older);
}

void live_count_free(struct live *live, struct process *process, const struct live_block *block)
{
	const struct mlk_event *event = live->event;

	if (block->use != LIVE_IN_USE)
		return;
	if (block->part || block->known) {
		live_add_part(live, LIVE_FREED, block);
		/* another thread may have got its address meanwhile */
		if (!block->mapped && !block_map_find(&process->blocks, block->addr))
			live_note_freed(live, process, block->addr);
		return;
	}
	if (block->mapped) /* the range that blocks were unmapped with */
		return;
	if (event && event->kind == MLK_ALLOC && event->addr == block->addr)
		live->totals.unknown_frees++; /* realloc gave it another size where it is */
	else
		live_count_older(live, process, block->addr, 0);
}

void live_settle(struct live *live, struct process *process, const struct mlk_event *event)
{
	struct live_block block;

	if (!block_map_take(&process->pending, live_pending_key(event->tid, 0), &block))
		return;
	live_count_free(live, process, &block);
	for (uint32_t n = 1; block.mapped; n++) {
		if (!block_map_take(&process->pending, live_pending_key(event->tid, n), &block))
			return;
		live_count_free(live, process, &block);
	}
}

static void add_difference(struct live_amount *to, const struct live_amount *before,
			   const struct live_amount *now)
{
	to->blocks += now->blocks - before->blocks;
	to->bytes += now->bytes - before->bytes;
}

void live_account(struct live *live, struct process *process, const struct live_totals *before)
{
	struct live_totals *now = &live->totals, *own = &process->totals;
	uint64_t unknown = now->unknown_frees - before->unknown_frees;

	if (process->inherits) {
		now->unknown_frees -= unknown;
		now->inherited_frees += unknown;
		own->inherited_frees += unknown;
	} else {
		own->unknown_frees += unknown;
	}
	add_difference(&own->allocated, &before->allocated, &now->allocated);
	add_difference(&own->freed, &before->freed, &now->freed);
	add_difference(&own->outstanding, &before->outstanding, &now->outstanding);
	add_difference(&own->implied, &before->implied, &now->implied);
	add_difference(&own->gone, &before->gone, &now->gone);
	add_difference(&own->older, &before->older, &now->older);
	own->freed_again += now->freed_again - before->freed_again;
	add_difference(&own->reserved, &before->reserved, &now->reserved);
	add_difference(&own->given_back, &before->given_back, &now->given_back);
}
