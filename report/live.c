/* live.c - the rules by which events become live blocks
 *
 * The old block of a realloc leaves the table before the allocator can hand its address to another
 * thread (RELEASE), and waits in the thread's place until the thread's next event tells how the
 * realloc ended: RESTORE puts it back, anything else makes the release final.
 */
#include "report/live.h"

#include <errno.h>
#include <stdlib.h>

struct live {
	struct block_map blocks;  /* by address */
	struct block_map pending; /* released, but not finally: by thread */
	struct live_totals totals;
};

int live_new(struct live **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static void add(struct live_amount *amount, const struct live_block *block)
{
	amount->blocks++;
	amount->bytes += block->size;
}

static void subtract(struct live_amount *amount, const struct live_block *block)
{
	amount->blocks--;
	amount->bytes -= block->size;
}

/* Take the live block at @addr out of the table.  Returns false when there is none. */
static bool take(struct live *live, uint32_t tgid, uint64_t addr, struct live_block *block)
{
	if (!block_map_take(&live->blocks, tgid, addr, block))
		return false;
	subtract(&live->totals.outstanding, block);
	return true;
}

static int put(struct live *live, const struct live_block *block)
{
	int err = block_map_put(&live->blocks, block->addr, block);

	if (!err)
		add(&live->totals.outstanding, block);
	return err;
}

/* The release of @block is final. */
static void count_free(struct live *live, const struct live_block *block)
{
	if (block->known)
		add(&live->totals.freed, block);
	else
		live->totals.unknown_frees++;
}

/* The thread went on: its realloc, if it was in one, has succeeded. */
static void settle(struct live *live, const struct mlk_event *event)
{
	struct live_block block;

	if (block_map_take(&live->pending, event->tgid, event->tid, &block))
		count_free(live, &block);
}

static int on_alloc(struct live *live, const struct mlk_event *event, uint32_t stack)
{
	struct live_block block = {
		.addr = event->addr,
		.size = event->size,
		.time_ns = event->time_ns,
		.tgid = event->tgid,
		.tid = event->tid,
		.stack = stack,
		.known = true,
	};
	struct live_block old;

	if (take(live, event->tgid, event->addr, &old))
		add(&live->totals.implied, &old);
	add(&live->totals.allocated, &block);
	return put(live, &block);
}

static void on_free(struct live *live, const struct mlk_event *event)
{
	struct live_block block;

	if (take(live, event->tgid, event->addr, &block))
		count_free(live, &block);
	else if (!(event->flags & MLK_EVENT_NESTED))
		live->totals.unknown_frees++;
}

static int on_release(struct live *live, const struct mlk_event *event)
{
	struct live_block block;

	if (!take(live, event->tgid, event->addr, &block))
		block = (struct live_block){.addr = event->addr, .tgid = event->tgid};
	return block_map_put(&live->pending, event->tid, &block);
}

static int on_restore(struct live *live, const struct mlk_event *event)
{
	struct live_block block;

	if (!block_map_take(&live->pending, event->tgid, event->tid, &block))
		return 0;
	if (block.addr != event->addr) {
		count_free(live, &block);
		return 0;
	}
	if (!block.known)
		return 0;
	/* its address was given out meanwhile, so it was freed, whatever the trace says */
	if (block_map_find(&live->blocks, block.tgid, block.addr)) {
		add(&live->totals.implied, &block);
		return 0;
	}
	return put(live, &block);
}

static void on_exec(struct live *live, uint32_t tgid)
{
	struct live_block block;
	size_t pos = 0;

	while (block_map_take_next(&live->blocks, tgid, &pos, &block)) {
		subtract(&live->totals.outstanding, &block);
		add(&live->totals.gone, &block);
	}
	/* the other threads were killed in the middle of their reallocs */
	pos = 0;
	while (block_map_take_next(&live->pending, tgid, &pos, &block))
		if (block.known)
			add(&live->totals.gone, &block);
}

int live_event(struct live *live, const struct mlk_event *event, uint32_t stack)
{
	/* A nested free is the realloc's own work, on whichever block: it is not over yet. */
	if (event->kind != MLK_RESTORE &&
	    !(event->kind == MLK_FREE && event->flags & MLK_EVENT_NESTED))
		settle(live, event);

	switch (event->kind) {
	case MLK_ALLOC:
		return on_alloc(live, event, stack);
	case MLK_FREE:
		on_free(live, event);
		return 0;
	case MLK_RELEASE:
		return on_release(live, event);
	case MLK_RESTORE:
		return on_restore(live, event);
	case MLK_EXEC:
		on_exec(live, event->tgid);
		return 0;
	default:
		return 0;
	}
}

void live_finish(struct live *live)
{
	const struct live_block *block;
	size_t pos = 0;

	while ((block = block_map_next(&live->pending, &pos)))
		count_free(live, block);
	block_map_release(&live->pending);
}

const struct live_totals *live_totals(const struct live *live)
{
	return &live->totals;
}

void live_each(const struct live *live, void (*visit)(void *arg, const struct live_block *block),
	       void *arg)
{
	const struct live_block *block;
	size_t pos = 0;

	while ((block = block_map_next(&live->blocks, &pos)))
		visit(arg, block);
}

void live_free(struct live *live)
{
	if (!live)
		return;
	block_map_release(&live->blocks);
	block_map_release(&live->pending);
	free(live);
}
