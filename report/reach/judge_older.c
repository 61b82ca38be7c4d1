/* judge_older.c - blocks whose allocation is not in the trace, among those that are judged */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/reach/judge.h"

static int by_start(const void *a, const void *b)
{
	const struct reach_block *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

int judge_add_older(struct judge *j)
{
	struct older *older = &j->older;
	int err;

	if (j->nr_recorded)
		qsort(j->recorded, j->nr_recorded, sizeof(*j->recorded), by_start);
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

int judge_each_older(const struct judge *j,
		     int (*visit)(void *arg, const struct older_block *block), void *arg)
{
	int err = 0;

	for (size_t at = 0; at < j->older.nr && !err; at++) {
		const struct mlk_heap_block *b = &j->older.blocks[at];
		const struct mlk_range *file = file_of(j, b->first);
		const struct older_block block = {
			.tgid = j->process.tgid,
			.address = b->address,
			.size = b->size,
			.first_path = file ? file->path : NULL,
			.first_offset = file ? b->first - file->start + file->offset : 0,
			.verdict = judge_find(j, b->address, JUDGE_OLDER)};

		err = visit(arg, &block);
	}
	return err;
}
