/* live.c - the rules by which events become live blocks
 *
 * The old block of a realloc leaves the table before the allocator can hand its address to another
 * thread (RELEASE), and waits in the thread's place until the thread's next event tells how the
 * realloc ended: RESTORE puts it back, anything else makes the release final.
 */
#include "report/live.h"

#include <errno.h>
#include <stdlib.h>

#include "report/array.h"
#include "report/hash_index.h"

/* Each process has maps of its own: an exec gives them back whole, and costs no more than it took
 * to fill them, however many blocks other processes have. */
struct process {
	uint32_t tgid;
	struct block_map blocks;  /* by address */
	struct block_map pending; /* released, but not finally: by thread */
};

struct live {
	struct process *all; /* in the order of their first event */
	size_t nr, room;
	struct hash_index index; /* of all, by tgid */
	size_t last;		 /* the one of the last event: often that of the next, too */
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

static bool same_process(const void *things, uint32_t number, const void *key)
{
	return ((const struct live *)things)->all[number].tgid == *(const uint32_t *)key;
}

/* Find the process @tgid, or add it.  NULL when there is no memory; valid until the next call. */
static struct process *process_of(struct live *live, uint32_t tgid)
{
	struct hash_query query = {
		.hash = hash_word(0, tgid), .things = live, .key = &tgid, .equal = same_process};
	struct process *all;
	uint32_t number;

	if (live->nr && live->all[live->last].tgid == tgid)
		return &live->all[live->last];
	if (!hash_index_find(&live->index, &query, &number)) {
		number = (uint32_t)live->nr;
		all = array_grow(live->all, &live->room, live->nr + 1, sizeof(*all));
		if (!all)
			return NULL;
		live->all = all;
		if (hash_index_add(&live->index, query.hash, number))
			return NULL;
		live->all[live->nr++] = (struct process){.tgid = tgid};
	}
	live->last = number;
	return &live->all[number];
}

/* Take the live block at @addr out of the table.  Returns false when there is none. */
static bool take(struct live *live, struct process *process, uint64_t addr,
		 struct live_block *block)
{
	if (!block_map_take(&process->blocks, addr, block))
		return false;
	subtract(&live->totals.outstanding, block);
	return true;
}

static int put(struct live *live, struct process *process, const struct live_block *block)
{
	int err = block_map_put(&process->blocks, block->addr, block);

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
static void settle(struct live *live, struct process *process, const struct mlk_event *event)
{
	struct live_block block;

	if (block_map_take(&process->pending, event->tid, &block))
		count_free(live, &block);
}

static int on_alloc(struct live *live, struct process *process, const struct mlk_event *event,
		    uint32_t stack)
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

	if (take(live, process, event->addr, &old))
		add(&live->totals.implied, &old);
	add(&live->totals.allocated, &block);
	return put(live, process, &block);
}

static void on_free(struct live *live, struct process *process, const struct mlk_event *event)
{
	struct live_block block;

	if (take(live, process, event->addr, &block))
		count_free(live, &block);
	else if (!(event->flags & MLK_EVENT_NESTED))
		live->totals.unknown_frees++;
}

static int on_release(struct live *live, struct process *process, const struct mlk_event *event)
{
	struct live_block block;

	if (!take(live, process, event->addr, &block))
		block = (struct live_block){.addr = event->addr, .tgid = event->tgid};
	return block_map_put(&process->pending, event->tid, &block);
}

static int on_restore(struct live *live, struct process *process, const struct mlk_event *event)
{
	struct live_block block;

	if (!block_map_take(&process->pending, event->tid, &block))
		return 0;
	if (block.addr != event->addr) {
		count_free(live, &block);
		return 0;
	}
	if (!block.known)
		return 0;
	/* its address was given out meanwhile, so it was freed, whatever the trace says */
	if (block_map_find(&process->blocks, block.addr)) {
		add(&live->totals.implied, &block);
		return 0;
	}
	return put(live, process, &block);
}

static void on_exec(struct live *live, struct process *process)
{
	const struct live_block *block;
	size_t pos = 0;

	while ((block = block_map_next(&process->blocks, &pos))) {
		subtract(&live->totals.outstanding, block);
		add(&live->totals.gone, block);
	}
	block_map_release(&process->blocks);
	/* the other threads were killed in the middle of their reallocs */
	pos = 0;
	while ((block = block_map_next(&process->pending, &pos)))
		if (block->known)
			add(&live->totals.gone, block);
	block_map_release(&process->pending);
}

int live_event(struct live *live, const struct mlk_event *event, uint32_t stack)
{
	struct process *process = process_of(live, event->tgid);

	if (!process)
		return -ENOMEM;
	/* A nested free is the realloc's own work, on whichever block: it is not over yet. */
	if (event->kind != MLK_RESTORE &&
	    !(event->kind == MLK_FREE && event->flags & MLK_EVENT_NESTED))
		settle(live, process, event);

	switch (event->kind) {
	case MLK_ALLOC:
		return on_alloc(live, process, event, stack);
	case MLK_FREE:
		on_free(live, process, event);
		return 0;
	case MLK_RELEASE:
		return on_release(live, process, event);
	case MLK_RESTORE:
		return on_restore(live, process, event);
	case MLK_EXEC:
		on_exec(live, process);
		return 0;
	default:
		return 0;
	}
}

void live_finish(struct live *live)
{
	for (size_t i = 0; i < live->nr; i++) {
		const struct live_block *block;
		size_t pos = 0;

		while ((block = block_map_next(&live->all[i].pending, &pos)))
			count_free(live, block);
		block_map_release(&live->all[i].pending);
	}
}

const struct live_totals *live_totals(const struct live *live)
{
	return &live->totals;
}

void live_each(const struct live *live, void (*visit)(void *arg, const struct live_block *block),
	       void *arg)
{
	for (size_t i = 0; i < live->nr; i++) {
		const struct live_block *block;
		size_t pos = 0;

		while ((block = block_map_next(&live->all[i].blocks, &pos)))
			visit(arg, block);
	}
}

void live_free(struct live *live)
{
	if (!live)
		return;
	for (size_t i = 0; i < live->nr; i++) {
		block_map_release(&live->all[i].blocks);
		block_map_release(&live->all[i].pending);
	}
	hash_index_release(&live->index);
	free(live->all);
	free(live);
}
