/* live_around.c - see live_around.h; and all blocks one after the other */
#include "report/live/live_around.h"

#include <errno.h>
#include <stdlib.h>

#include "report/live/live_state.h"

#define MAX_PARENTS 64 /* that a damaged trace may lead through */

void live_each_of(const struct process *process,
		  void (*visit)(void *arg, const struct live_block *block), void *arg)
{
	const struct live_block *block;
	size_t pos = 0;

	while ((block = block_map_next(&process->blocks, &pos)))
		visit(arg, block);
	for (block = range_map_from(&process->ranges, 0); block;
	     block = range_map_from(&process->ranges, block->addr + 1))
		visit(arg, block);
}

/* Who is told of what is in use. */
struct visitor {
	void (*visit)(void *arg, const struct live_block *block);
	void *arg;
};

static void visit_used(void *arg, const struct live_block *block)
{
	const struct visitor *visitor = arg;

	if (block->use == LIVE_IN_USE)
		visitor->visit(visitor->arg, block);
}

void live_each(const struct live *live, void (*visit)(void *arg, const struct live_block *block),
	       void *arg)
{
	struct visitor visitor = {visit, arg};

	for (size_t i = 0; i < live->nr; i++)
		live_each_of(&live->all[i], visit_used, &visitor);
}

bool live_holds(const struct live_block *block, uint64_t addr)
{
	return addr - block->addr < (block->size ? block->size : 1);
}

static void look_for_holder(void *arg, const struct live_block *block)
{
	struct live_around *around = arg;

	if (!live_holds(block, around->addr) ||
	    (around->held && around->holder.size <= block->size))
		return;
	around->held = true;
	around->holder = *block;
}

static void look_for_neighbours(void *arg, const struct live_block *block)
{
	struct live_around *around = arg;
	uint64_t start = around->holder.addr;
	uint64_t size = around->holder.size ? around->holder.size : 1;

	if (block->use != LIVE_IN_USE)
		return;
	if (block->addr < start && start - block->addr >= block->size &&
	    (!around->has_before || block->addr > around->before.addr)) {
		around->has_before = true;
		around->before = *block;
	}
	if (block->addr > start && block->addr - start >= size &&
	    (!around->has_after || block->addr < around->after.addr)) {
		around->has_after = true;
		around->after = *block;
	}
}

void live_look_around(const struct live *live, size_t process, uint64_t addr,
		      struct live_around *around)
{
	*around = (struct live_around){.addr = addr, .holder = {.addr = addr}};
	live_each_of(&live->all[process], look_for_holder, around);
	live_each_of(&live->all[process], look_for_neighbours, around);
}

/* Put @block among the @*nr at @all, of which there may be @most, if it is nearer to @addr than the
 * last of them. */
static void keep_near(struct live_block *all, size_t *nr, size_t most, uint64_t addr,
		      const struct live_block *block)
{
	uint64_t distance = addr > block->addr ? addr - block->addr : block->addr - addr;
	size_t at = *nr;

	for (; at; at--) {
		uint64_t other = all[at - 1].addr;

		if ((addr > other ? addr - other : other - addr) <= distance)
			break;
		if (at < most)
			all[at] = all[at - 1];
	}
	if (at == most)
		return;
	all[at] = *block;
	*nr += *nr < most;
}

static void look_near(void *arg, const struct live_block *block)
{
	struct live_near *near = arg;
	const struct live_block *holder = &near->around->holder;
	uint64_t start = holder->addr, size = holder->size ? holder->size : 1;

	if (block->use != LIVE_IN_USE)
		return;
	if (block->addr < start && start - block->addr >= block->size)
		keep_near(near->before, &near->nr_before, near->wanted, start, block);
	if (block->addr > start && block->addr - start >= size)
		keep_near(near->after, &near->nr_after, near->wanted, start, block);
}

int live_look_near(const struct live *live, size_t process, const struct live_around *around,
		   size_t wanted, struct live_near *near)
{
	*near = (struct live_near){.wanted = wanted, .around = around};
	near->before = calloc(wanted + 1, sizeof(*near->before));
	near->after = calloc(wanted + 1, sizeof(*near->after));
	if (!near->before || !near->after)
		return -ENOMEM;
	live_each_of(&live->all[process], look_near, near);
	return 0;
}

void live_near_release(struct live_near *near)
{
	free(near->before);
	free(near->after);
	*near = (struct live_near){0};
}

/* The last process that had the number @tgid. */
static const struct process *newest(const struct live *live, uint32_t tgid)
{
	for (size_t i = live->nr; i-- > 0;)
		if (live->all[i].tgid == tgid)
			return &live->all[i];
	return NULL;
}

bool live_find(const struct live *live, uint32_t tgid, uint64_t addr, struct live_block *block)
{
	const struct process *process = newest(live, tgid);

	for (int i = 0; process && i < MAX_PARENTS; i++) {
		const struct live_block *found = block_map_find(&process->blocks, addr);

		if (found) {
			*block = *found;
			return true;
		}
		process = process->inherits ? newest(live, process->parent) : NULL;
	}
	return false;
}
