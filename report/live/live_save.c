/* live_save.c - see live_save.h */
#include "report/live/live_save.h"

#include <errno.h>

#include "format/reader.h"
#include "report/base/array.h"
#include "report/live/live_state.h"

/* Of a trace. */
struct saved_live {
	uint64_t nr_processes, nr_begun, nr_ended;
	struct live_totals totals;
};

/* Of a process. */
struct saved_process {
	uint32_t tgid, parent;
	uint32_t inherits, exited, execed, frees_older; /* 0 or 1 */
	uint64_t ended_as, ended_ns;
	struct live_totals totals;
};

/* Of a block. */
struct saved_block {
	uint64_t addr, size, time_ns, weight, stands_for;
	uint32_t tgid, tid, stack, origin;
	uint32_t known, mapped, part, use;
};

static void save_block(struct save *to, const struct live_block *block)
{
	const struct saved_block saved = {.addr = block->addr,
					  .size = block->size,
					  .time_ns = block->time_ns,
					  .weight = block->weight,
					  .stands_for = block->stands_for,
					  .tgid = block->tgid,
					  .tid = block->tid,
					  .stack = block->stack,
					  .origin = block->origin,
					  .known = block->known,
					  .mapped = block->mapped,
					  .part = block->part,
					  .use = block->use};

	save_put(to, &saved, sizeof(saved));
}

static void save_map(struct save *to, const struct block_map *map)
{
	const uint64_t nr = map->nr_blocks;
	const struct live_block *block;
	size_t pos = 0;

	save_put(to, &nr, sizeof(nr));
	while ((block = block_map_next(map, &pos)))
		save_block(to, block);
}

static void save_ranges(struct save *to, const struct range_map *map)
{
	const struct live_block *block;
	uint64_t nr = 0;

	for (block = range_map_from(map, 0); block; block = range_map_from(map, block->addr + 1))
		nr++;
	save_put(to, &nr, sizeof(nr));
	for (block = range_map_from(map, 0); nr; nr--) {
		save_block(to, block);
		block = range_map_from(map, block->addr + 1);
	}
}

uint64_t live_save_bytes(const struct live *live)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < live->nr; i++)
		nr += live->all[i].blocks.nr_blocks + live->all[i].older.nr_blocks;
	return nr * sizeof(struct saved_block);
}

void live_save(const struct live *live, struct save *to)
{
	const struct saved_live all = {.nr_processes = live->nr,
				       .nr_begun = live->nr_begun,
				       .nr_ended = live->nr_ended,
				       .totals = live->totals};

	save_put(to, &all, sizeof(all));
	for (size_t i = 0; i < live->nr; i++) {
		const struct process *p = &live->all[i];
		const struct saved_process process = {.tgid = p->tgid,
						      .parent = p->parent,
						      .inherits = p->inherits,
						      .exited = p->exited,
						      .execed = p->execed,
						      .frees_older = p->frees_older,
						      .ended_as = p->ended_as,
						      .ended_ns = p->ended_ns,
						      .totals = p->totals};

		save_put(to, &process, sizeof(process));
		save_map(to, &p->blocks);
		save_ranges(to, &p->ranges);
		save_map(to, &p->older);
	}
}

/* Read a block that has a stack if it is known. */
static bool load_block(struct load *from, size_t nr_stacks, struct live_block *block)
{
	struct saved_block saved;

	if (!load_get(from, &saved, sizeof(saved)) || saved.use > LIVE_GIVEN_BACK ||
	    (saved.known && saved.stack >= nr_stacks))
		return false;
	*block = (struct live_block){.addr = saved.addr,
				     .size = saved.size,
				     .time_ns = saved.time_ns,
				     .weight = saved.weight,
				     .stands_for = saved.stands_for,
				     .tgid = saved.tgid,
				     .tid = saved.tid,
				     .stack = saved.stack,
				     .origin = saved.origin & BLOCK_ORIGIN_MAX,
				     .known = saved.known & 1,
				     .mapped = saved.mapped & 1,
				     .part = saved.part & 1,
				     .use = saved.use & 3};
	return true;
}

/* A block that is outstanding is known. */
static int load_map(struct block_map *map, struct load *from, size_t nr_stacks, bool older)
{
	struct live_block block;
	int err = 0;

	for (size_t nr = load_count(from, sizeof(struct saved_block)); !err && nr; nr--) {
		if (!load_block(from, nr_stacks, &block) || !(block.known || older))
			return MLK_E_CORRUPT;
		err = block_map_put(map, block.addr, &block);
	}
	return err == -EEXIST ? MLK_E_CORRUPT : err;
}

/* They do not overlap, and come in the order of their addresses. */
static int load_ranges(struct range_map *map, struct load *from, size_t nr_stacks)
{
	struct live_block block;
	uint64_t least = 0;
	int err = 0;

	for (size_t nr = load_count(from, sizeof(struct saved_block)); !err && nr; nr--) {
		if (!load_block(from, nr_stacks, &block) || !block.known || block.addr < least ||
		    block.addr == UINT64_MAX)
			return MLK_E_CORRUPT;
		least = block.size ? range_end(&block) : block.addr + 1;
		err = range_map_put(map, &block);
	}
	return err;
}

/* Process @number of @live, the last so far, is the newest with its id. */
static int index_process(struct live *live, uint32_t number)
{
	const uint32_t tgid = live->all[number].tgid;
	struct hash_query query = {.things = live,
				   .key = &tgid,
				   .equal = live_same_process,
				   .hash = hash_word(0, tgid)};
	uint32_t first;

	if (!hash_index_find(&live->index, &query, &first))
		return hash_index_add(&live->index, query.hash, number);
	live->all[first].newest = number;
	return 0;
}

static int load_process(struct live *live, struct load *from, size_t nr_stacks)
{
	struct saved_process saved;
	struct process process, *p;
	int err;

	if (!load_get(from, &saved, sizeof(saved)))
		return MLK_E_CORRUPT;
	process = (struct process){.tgid = saved.tgid,
				   .parent = saved.parent,
				   .newest = (uint32_t)live->nr,
				   .inherits = saved.inherits != 0,
				   .exited = saved.exited != 0,
				   .execed = saved.execed != 0,
				   .frees_older = saved.frees_older != 0,
				   .ended_as = saved.ended_as,
				   .ended_ns = saved.ended_ns,
				   .totals = saved.totals};
	err = array_append(&live->all, &live->nr, &live->room, &process, sizeof(process));
	if (!err)
		err = index_process(live, (uint32_t)live->nr - 1);
	p = err ? NULL : &live->all[live->nr - 1];
	if (!err)
		err = load_map(&p->blocks, from, nr_stacks, false);
	if (!err)
		err = load_ranges(&p->ranges, from, nr_stacks);
	if (!err)
		err = load_map(&p->older, from, nr_stacks, true);
	return err;
}

int live_load(struct live *live, struct load *from, size_t nr_stacks)
{
	struct saved_live all;
	int err = 0;

	if (!load_get(from, &all, sizeof(all)) || all.nr_processes >= UINT32_MAX)
		return MLK_E_CORRUPT;
	live->nr_begun = all.nr_begun;
	live->nr_ended = all.nr_ended;
	live->totals = all.totals;
	while (!err && live->nr < all.nr_processes)
		err = load_process(live, from, nr_stacks);
	return err ? err : from->bad ? MLK_E_CORRUPT : 0;
}
