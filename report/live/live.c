/* live.c - the rules by which events become live blocks
 *
 * The old block of a realloc leaves the table before the allocator can hand its address to another
 * thread (RELEASE), and waits in the thread's place until the thread's next event tells how the
 * realloc ended: RESTORE puts it back, anything else makes the release final.  So does what mremap
 * takes away (UNMAP).
 */
#include "report/live/live_state.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/array.h"

int live_new(struct live **out)
{
	return (*out = calloc(1, sizeof(**out))) ? 0 : -ENOMEM;
}

void live_watch(struct live *live, const struct live_watch *watch)
{
	live->watch = *watch;
}

void live_set_sampling(struct live *live, const struct sampling *sampling)
{
	live->sampling = *sampling;
}

/* A new process, in the place of one that was forgotten if there is any. */
static int add_process(struct live *live, uint32_t tgid, uint32_t *number)
{
	struct process process = {.tgid = tgid};
	int err = 0;

	*number = live->nr_unused ? live->unused[live->nr_unused - 1] : (uint32_t)live->nr;
	process.newest = *number;
	if (live->nr >= UINT32_MAX)
		return -ENOMEM;
	if (live->nr_unused) {
		live->nr_unused--;
		live->all[*number] = process;
	} else {
		err = array_append(&live->all, &live->nr, &live->room, &process, sizeof(process));
	}
	live->nr_begun += !err;
	return err;
}

/* The process that has the number @tgid now: the newest of those that had it, if it goes on. */
static int intern_process(struct live *live, uint32_t tgid, uint32_t *number)
{
	struct hash_query query = {.things = live, .key = &tgid, .equal = live_same_process};
	uint32_t first;
	bool found;
	int err;

	query.hash = hash_word(0, tgid);
	found = hash_index_find(&live->index, &query, &first);
	if (found && !live->all[live->all[first].newest].exited) {
		*number = live->all[first].newest;
		return 0;
	}
	err = add_process(live, tgid, number);
	if (!err && found)
		live->all[first].newest = *number;
	else if (!err)
		err = hash_index_add(&live->index, query.hash, *number);
	return err;
}

static struct process *find_process(struct live *live, uint32_t tgid)
{
	size_t before = live->nr;
	uint32_t number;

	if (intern_process(live, tgid, &number))
		return NULL;
	if (before == 1 && live->nr > 1)
		live->all[0].totals = live->totals; /* which were those of it alone */
	live->last = number;
	return &live->all[number];
}

/* Find the process that has the number @tgid now, or add it.  NULL when there is no memory; valid
 * until the next call. */
static inline struct process *process_of(struct live *live, uint32_t tgid)
{
	if (live->nr && live->all[live->last].tgid == tgid && !live->all[live->last].exited)
		return &live->all[live->last];
	return find_process(live, tgid);
}

/* Take the live block at @addr out of the table.  Returns false when there is none. */
static bool take_block(struct live *live, struct process *process, uint64_t addr,
		       struct live_block *block)
{
	if (!block_map_take(&process->blocks, addr, block))
		return false;
	live_subtract(live, LIVE_OUTSTANDING, block);
	return true;
}

static int put_block(struct live *live, struct process *process, const struct live_block *block)
{
	int err = block_map_put(&process->blocks, block->addr, block);

	if (!err)
		live_add(live, LIVE_OUTSTANDING, block);
	return err;
}

struct live_block live_block_of(const struct mlk_event *event, uint32_t stack)
{
	return (struct live_block){
		.addr = event->addr,
		.size = event->size,
		.time_ns = event->time_ns,
		.tgid = event->tgid,
		.tid = event->tid,
		.stack = stack,
		.origin = event->regs[MLK_ORIGIN_REG] <= BLOCK_ORIGIN_MAX
				  ? event->regs[MLK_ORIGIN_REG] & BLOCK_ORIGIN_MAX
				  : 0,
		.known = true,
		.mapped = event->func == MLK_FUNC_MMAP || event->func == MLK_FUNC_MREMAP ||
			  event->func == MLK_FUNC_ALLOC_PAGES,
		.use = event->flags & MLK_EVENT_RESERVED ? LIVE_RESERVED : LIVE_IN_USE,
	};
}

static int on_alloc(struct live *live, struct process *process, const struct mlk_event *event,
		    uint32_t stack)
{
	struct live_block block = live_block_of(event, stack);
	struct live_block old;
	int err;

	sampling_weigh(&live->sampling, event, &block);
	if (block.mapped)
		return live_on_map(live, process, &block);
	block.use = LIVE_IN_USE;
	err = block_map_put(&process->blocks, block.addr, &block);
	if (err == -EEXIST && take_block(live, process, event->addr, &old)) {
		live_add(live, LIVE_IMPLIED, &old);
		err = block_map_put(&process->blocks, block.addr, &block);
	}
	if (err)
		return err;
	live_give(live, &block);
	freed_set_drop(&process->freed, block.addr);
	live_size_older(live, process, &block);
	return 0;
}

static void on_free(struct live *live, struct process *process, const struct mlk_event *event)
{
	const struct live_block *block = block_map_find(&process->blocks, event->addr);

	if (!block) {
		if (!(event->flags & MLK_EVENT_NESTED))
			live_count_older(live, process, event->addr, event->tid);
		return;
	}
	live_free_block(live, block);
	block_map_drop(&process->blocks, event->addr);
	live_note_freed(live, process, event->addr);
}

static int on_release(struct live *live, struct process *process, const struct mlk_event *event)
{
	struct live_block block;

	if (!take_block(live, process, event->addr, &block))
		block = (struct live_block){.addr = event->addr, .tgid = event->tgid};
	return block_map_put(&process->pending, live_pending_key(event->tid, 0), &block);
}

static int on_restore(struct live *live, struct process *process, const struct mlk_event *event)
{
	struct live_block block;

	if (!block_map_take(&process->pending, live_pending_key(event->tid, 0), &block))
		return 0;
	if (block.addr != event->addr) {
		/* of another call */
		int err = block_map_put(&process->pending, live_pending_key(event->tid, 0), &block);

		live_settle(live, process, event);
		return err;
	}
	if (block.mapped)
		return live_put_back(live, process, event->tid);
	if (!block.known)
		return 0;
	/* its address was allocated meanwhile, so it was freed, whatever the trace says */
	if (block_map_find(&process->blocks, block.addr)) {
		live_add(live, LIVE_IMPLIED, &block);
		return 0;
	}
	return put_block(live, process, &block);
}

static void lose_block(struct live *live, const struct live_block *block)
{
	live_subtract_piece(live, block);
	if (block->use == LIVE_IN_USE)
		live_add(live, LIVE_GONE, block);
}

static int lose_blocks(struct live *live, const struct block_map *blocks)
{
	const struct live_block *block, **list;
	size_t pos = 0;
	int err;

	if (!live->watch.in_order) {
		while ((block = block_map_next(blocks, &pos)))
			lose_block(live, block);
		return 0;
	}
	err = block_map_list(blocks, &list);
	for (size_t i = 0; !err && i < blocks->nr_blocks; i++)
		lose_block(live, list[i]);
	free(list);
	return err;
}

int live_lose_all(struct live *live, struct process *process)
{
	const struct live_block *block;
	struct live_block old;
	size_t pos = 0;
	int err;

	while (range_map_take(&process->ranges, 0, UINT64_MAX, &old))
		lose_block(live, &old);
	err = lose_blocks(live, &process->blocks);
	block_map_release(&process->blocks);
	/* the other threads were killed in the middle of their reallocs */
	while ((block = block_map_next(&process->pending, &pos)))
		if (block->use == LIVE_IN_USE && (block->part || block->known))
			live_add_part(live, LIVE_GONE, block);
	block_map_release(&process->pending);
	block_map_release(&process->older);
	freed_set_release(&process->freed);
	process->inherits = false;
	return err;
}

/* Releases of @process that wait for their outcome are final. */
static void finish_process(struct live *live, struct process *process)
{
	const struct live_block *block;
	size_t pos = 0;

	while ((block = block_map_next(&process->pending, &pos)))
		live_count_free(live, process, block);
	block_map_release(&process->pending);
}

/* @event says or implies that @process has ended. */
static void end_process(struct live *live, struct process *process, const struct mlk_event *event)
{
	finish_process(live, process);
	freed_set_release(&process->freed);
	process->exited = true;
	process->ended_as = ++live->nr_ended;
	process->ended_ns = event->time_ns;
}

static int apply_event(struct live *live, struct process *process, const struct mlk_event *event,
		       uint32_t stack)
{
	/* A nested free is the realloc's own work, on whichever block: it is not over yet. */
	if (process->pending.nr_blocks && event->kind != MLK_RESTORE && event->kind != MLK_PAGES &&
	    !(event->kind == MLK_FREE && event->flags & MLK_EVENT_NESTED))
		live_settle(live, process, event);

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
	case MLK_UNMAP:
		return live_on_unmap(live, process, event);
	case MLK_PAGES:
		return live_on_pages(live, process, event);
	case MLK_EXEC:
		process->execed = true;
		return live_lose_all(live, process);
	case MLK_EXIT:
		end_process(live, process, event);
		return 0;
	default:
		return 0;
	}
}

/* The process begins: one that had its number before has ended, whatever the trace says. */
static int on_fork(struct live *live, const struct mlk_event *event)
{
	struct process *process = process_of(live, event->tgid);
	struct live_totals before;

	if (process && (process->parent || process->blocks.nr_blocks || process->ranges.root)) {
		before = live->totals;
		end_process(live, process, event);
		live_account(live, process, &before);
		process = process_of(live, event->tgid);
	}
	if (!process)
		return -ENOMEM;
	process->parent = (uint32_t)event->addr;
	process->inherits = true;
	return 0;
}

int live_event(struct live *live, const struct mlk_event *event, uint32_t stack)
{
	struct process *process;
	struct live_totals before;
	int err;

	live->event = event;
	if (event->kind == MLK_FORK)
		return on_fork(live, event);
	process = process_of(live, event->tgid);
	if (!process)
		return -ENOMEM;
	if (live->nr == 1 && !process->inherits)
		return apply_event(live, process, event, stack);
	before = live->totals;
	err = apply_event(live, process, event, stack);
	live_account(live, process, &before);
	return err;
}

/* The process of the last events: no look is made at others. */
static const struct process *expected_process(const struct live *live, uint32_t tgid)
{
	return live->nr && live->all[live->last].tgid == tgid ? &live->all[live->last] : NULL;
}

void live_expect(const struct live *live, uint32_t tgid, uint64_t addr)
{
	const struct process *process = expected_process(live, tgid);

	if (process)
		block_map_expect(&process->blocks, addr);
}

void live_expect_free(const struct live *live, uint32_t tgid, uint64_t addr)
{
	const struct process *process = expected_process(live, tgid);

	if (process)
		block_map_expect_place(&process->blocks, addr);
}

const struct live_block *live_expected(const struct live *live, uint32_t tgid, uint64_t addr)
{
	const struct process *process = expected_process(live, tgid);

	return process ? block_map_find(&process->blocks, addr) : NULL;
}

void live_finish(struct live *live)
{
	live->event = NULL;
	for (size_t i = 0; i < live->nr; i++) {
		struct live_totals before = live->totals;

		finish_process(live, &live->all[i]);
		if (live->nr > 1 || live->all[i].inherits)
			live_account(live, &live->all[i], &before);
	}
}

const struct live_totals *live_totals(const struct live *live)
{
	return &live->totals;
}

uint64_t live_nr_begun(const struct live *live)
{
	return live->nr_begun;
}

size_t live_nr_processes(const struct live *live)
{
	return live->nr;
}

struct live_process live_process(const struct live *live, size_t number)
{
	const struct process *process = &live->all[number];

	return (struct live_process){
		.tgid = process->tgid,
		.parent = process->parent,
		.exited = process->exited,
		.execed = process->execed,
		.totals = live->nr == 1 ? live->totals : process->totals,
	};
}

int live_process_number(struct live *live, uint32_t tgid, uint32_t *number)
{
	const struct process *process = process_of(live, tgid);

	*number = process ? (uint32_t)(process - live->all) : 0;
	return process ? 0 : -ENOMEM;
}

void live_each_older(const struct live *live,
		     void (*visit)(void *arg, const struct live_block *block), void *arg)
{
	for (size_t i = 0; i < live->nr; i++) {
		const struct live_block *block;
		size_t pos = 0;

		while ((block = block_map_next(&live->all[i].older, &pos)))
			visit(arg, block);
	}
}

void live_free(struct live *live)
{
	if (!live)
		return;
	for (size_t i = 0; i < live->nr; i++) {
		block_map_release(&live->all[i].blocks);
		range_map_release(&live->all[i].ranges);
		block_map_release(&live->all[i].pending);
		block_map_release(&live->all[i].older);
		freed_set_release(&live->all[i].freed);
	}
	intern_release(&live->table);
	free(live->unused);
	free(live);
}
