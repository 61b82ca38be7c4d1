/* freed.c - see freed.h */
#include "report/reach/graph/freed.h"

#include <errno.h>
#include <stdlib.h>

#include "report/live/block_map.h"

/* Blocks that are free, by their address; of the same address the last one. */
struct freed {
	struct block_map map;
};

int freed_new(struct freed **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

int freed_add(struct freed *f, uint64_t start, uint64_t end)
{
	const struct live_block block = {.addr = start, .size = end - start};
	struct live_block old;

	block_map_take(&f->map, start, &old);
	return block_map_put(&f->map, start, &block);
}

void freed_drop(struct freed *f, uint64_t start)
{
	struct live_block old;

	block_map_take(&f->map, start, &old);
}

/* Areas being made: they are given in the order of their beginnings. */
struct maker {
	struct reach_area *all;
	size_t nr;
	uint64_t done; /* up to here nothing more is added */
};

static void add_area(struct maker *m, uint64_t start, uint64_t end)
{
	if (start < m->done)
		start = m->done;
	if (start >= end)
		return;
	m->done = end;
	if (m->nr && m->all[m->nr - 1].end == start)
		m->all[m->nr - 1].end = end;
	else
		m->all[m->nr++] = (struct reach_area){start, end};
}

/* Add [@start, @end) without the blocks from *@next on: those before lie below it. */
static void add_between(struct maker *m, uint64_t start, uint64_t end,
			const struct reach_block *blocks, size_t nr, size_t *next)
{
	while (*next < nr && blocks[*next].end <= start)
		(*next)++;
	for (size_t i = *next; i < nr && blocks[i].start < end; i++) {
		add_area(m, start, blocks[i].start);
		start = blocks[i].end > start ? blocks[i].end : start;
	}
	add_area(m, start, end);
}

int freed_areas(const struct freed *f, const struct reach_block *blocks, size_t nr,
		struct reach_area **areas, size_t *nr_areas)
{
	const struct live_block **list;
	struct maker m = {0};
	size_t next = 0;
	int err = block_map_list(&f->map, &list);

	*areas = NULL;
	*nr_areas = 0;
	if (err)
		return err;
	/* each block of those that live can divide one of them */
	m.all = calloc(f->map.nr_blocks + nr + 1, sizeof(*m.all));
	for (size_t i = 0; m.all && i < f->map.nr_blocks; i++)
		add_between(&m, list[i]->addr, list[i]->addr + list[i]->size, blocks, nr, &next);
	free(list);
	*areas = m.all;
	*nr_areas = m.nr;
	return m.all ? 0 : -ENOMEM;
}

void freed_free(struct freed *f)
{
	if (!f)
		return;
	block_map_release(&f->map);
	free(f);
}
