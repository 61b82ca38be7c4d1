/* judge_older.c - blocks whose allocation is not in the trace, among those that are judged */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/reach/graph/sort_blocks.h"
#include "report/reach/judge.h"
#include "report/reach/usable_size.h"

int judge_add_older(struct judge *j)
{
	struct older *older = &j->older;
	int err;

	sort_blocks(j->recorded, j->nr_recorded);
	err = older_keep(older, j->recorded, j->nr_recorded, j->freed);
	for (size_t i = 0; i < older->nr && !err; i++) {
		const struct mlk_heap_block *b = &older->blocks[i];
		const struct reach_block block = {b->address, b->address + b->size, JUDGE_OLDER};

		if (j->nr >= REACH_MOST_BLOCKS)
			return -ENOMEM;
		err = array_append(&j->blocks, &j->nr, &j->room, &block, sizeof(block));
	}
	j->process.walked = older->whole;
	j->process.unwalked = older->unwalked;
	memcpy(j->process.allocator, older->allocator, sizeof(j->process.allocator));
	return err;
}

static int keep_files(struct judge *j, const struct mlk_pass *pass)
{
	j->files = calloc(pass->nr_ranges + 1, sizeof(*j->files));
	if (!j->files)
		return -ENOMEM;
	for (size_t i = 0; i < pass->nr_ranges; i++) {
		struct mlk_range file = pass->ranges[i];

		if (file.path[0] != '/')
			continue;
		file.path = strdup(file.path);
		if (!file.path)
			return -ENOMEM;
		j->files[j->nr_files++] = file;
	}
	return 0;
}

int judge_finish_older(struct judge *j)
{
	for (size_t i = 0; i < j->older.nr; i++) {
		const struct mlk_heap_block *b = &j->older.blocks[i];

		live_amount_add(&j->process.older[judge_find(j, b->address, JUDGE_OLDER)],
				(struct live_amount){1, b->size});
	}
	return keep_files(j, &j->snapshot->passes[j->snapshot->nr - 1]);
}

/* The data of a file that @address is in; NULL: of none. */
static const struct mlk_range *file_of(const struct judge *j, uint64_t address)
{
	size_t low = 0, high = j->nr_files;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (j->files[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < j->files[low - 1].end ? &j->files[low - 1] : NULL;
}

/* The size that the allocator makes of @size bytes. */
static uint64_t rounded(const struct judge *j, uint64_t size)
{
	return usable_size(j->older.allocator, size);
}

int judge_note_referrers(struct judge *j)
{
	const struct reach_graph *graph = reach_pass_graph(j->current);

	if (!j->older.nr || !j->older.nr_known)
		return 0;
	free(j->referrers);
	j->referrers = calloc(j->nr + 1, sizeof(*j->referrers));
	if (!j->referrers)
		return -ENOMEM;
	for (size_t i = 0; i < graph->nr_roots; i++)
		if (!(graph->roots[i].to & REACH_INTERIOR))
			j->referrers[graph->roots[i].to] = OLDER_OF_ROOT;
	for (size_t i = 0; i < graph->nr; i++) {
		uint64_t size = rounded(j, j->blocks[i].end - j->blocks[i].start);

		for (uint32_t k = graph->first[i]; k < graph->first[i + 1]; k++) {
			uint32_t to = graph->to[k];

			if (to & REACH_INTERIOR || to == i)
				continue;
			if (j->referrers[to] <= OLDER_OF_ROOT || size < j->referrers[to])
				j->referrers[to] = size;
		}
	}
	return 0;
}

/* Describe the block, which was walked over, by its place among those that are judged. */
static struct older_block describe(const struct judge *j, const struct older_known *known)
{
	const struct mlk_range *file = file_of(j, known->first);
	size_t at = judge_place(j, known->address, known->time_ns);

	return (struct older_block){
		.tgid = j->process.tgid,
		.time_ns = known->time_ns,
		.address = known->address,
		.size = known->size,
		.first_path = file ? file->path : NULL,
		.first_offset = file ? known->first - file->start + file->offset : 0,
		.referrer = j->referrers && at < j->nr ? j->referrers[at] : OLDER_OF_NONE,
		.verdict = at < j->nr ? (enum block_verdict)j->verdicts[at] : VERDICT_NONE};
}

int judge_each_older(const struct judge *j,
		     int (*visit)(void *arg, const struct older_block *block), void *arg)
{
	int err = 0;

	for (size_t i = 0; i < j->older.nr && !err; i++) {
		const struct mlk_heap_block *b = &j->older.blocks[i];
		const struct older_known known = {b->address, JUDGE_OLDER, b->size, b->first};
		const struct older_block block = describe(j, &known);

		err = visit(arg, &block);
	}
	return err;
}

int judge_each_known(const struct judge *j,
		     int (*visit)(void *arg, const struct older_block *block), void *arg)
{
	int err = 0;

	for (size_t i = 0; j->older.nr && i < j->older.nr_known && !err; i++) {
		const struct older_block block = describe(j, &j->older.known[i]);

		if (block.verdict != VERDICT_NONE)
			err = visit(arg, &block);
	}
	return err;
}
