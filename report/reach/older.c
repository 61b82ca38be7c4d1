/* older.c - see older.h */
#include "report/reach/older.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"

static int add_blocks(struct older *older, const struct mlk_heap *heap)
{
	int err = 0;

	for (size_t i = 0; i < heap->nr && !err; i++) {
		const struct mlk_heap_block *b = &heap->blocks[i];
		const struct mlk_heap_block *last =
			older->nr ? &older->blocks[older->nr - 1] : NULL;

		/* what is made by hand may be in any order */
		if (last && b->address < last->address + last->size)
			continue;
		err = array_append(&older->blocks, &older->nr, &older->room, b, sizeof(*b));
	}
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct reach_area *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int finish(struct older *older, const struct mlk_heap *heap)
{
	free(older->arenas);
	older->arenas = calloc(heap->nr_arenas + 1, sizeof(*older->arenas));
	if (!older->arenas)
		return -ENOMEM;
	for (size_t i = 0; i < heap->nr_arenas; i++)
		older->arenas[i] = (struct reach_area){
			heap->arenas[i].address, heap->arenas[i].address + heap->arenas[i].length};
	older->nr_arenas = heap->nr_arenas;
	qsort(older->arenas, older->nr_arenas, sizeof(*older->arenas), by_start);
	snprintf(older->allocator, sizeof(older->allocator), "%s", heap->allocator);
	older->unwalked = heap->unwalked;
	older->whole = true;
	return 0;
}

int older_read(struct older *older, struct mlk_reader *trace, uint32_t tgid, uint32_t snapshot)
{
	struct mlk_record record;
	int more = 0, err = 0;

	*older = (struct older){0};
	mlk_reader_rewind(trace, MLK_RECORD_HEAP);
	while (!err && !older->whole && (more = mlk_reader_next(trace, &record)) > 0) {
		if (record.heap.tgid != tgid || record.heap.snapshot != snapshot)
			continue;
		err = add_blocks(older, &record.heap);
		if (!err && record.heap.flags & MLK_HEAP_LAST)
			err = finish(older, &record.heap);
	}
	if (!older->whole)
		older->nr = 0;
	return err ? err : more < 0 ? more : 0;
}

static bool is_free(const struct mlk_heap_block *b)
{
	return b->state >= MLK_HEAP_CACHED && b->state <= MLK_HEAP_TOP;
}

/* @block is in use, and recorded as @of. */
static int add_known(struct older *older, const struct mlk_heap_block *block,
		     const struct reach_block *of)
{
	const struct older_known known = {block->address, of->time_ns, block->size, block->first};

	return array_append(&older->known, &older->nr_known, &older->room_known, &known,
			    sizeof(known));
}

/* Memory that was freed while the recording went on, as far as it is known: what is in use there
 * was allocated later, so nothing in it is older. */
struct sweep {
	struct reach_area *areas;
	size_t nr, next;
};

static bool was_freed(struct sweep *s, const struct mlk_heap_block *b)
{
	while (s->next < s->nr && s->areas[s->next].end <= b->address)
		s->next++;
	return s->next < s->nr && s->areas[s->next].start < b->address + b->size;
}

int older_keep(struct older *older, const struct reach_block *recorded, size_t nr,
	       struct freed *freed)
{
	struct sweep sweep = {0};
	size_t next = 0, kept = 0;
	uint64_t until = 0; /* those before reach so far */
	int err = older->nr ? freed_areas(freed, NULL, 0, &sweep.areas, &sweep.nr) : 0;

	for (size_t i = 0; i < older->nr && !err; i++) {
		const struct mlk_heap_block b = older->blocks[i];
		bool taken;

		for (; next < nr && recorded[next].start < b.address; next++)
			until = recorded[next].end > until ? recorded[next].end : until;
		taken = until > b.address ||
			(next < nr && recorded[next].start < b.address + b.size);
		if (b.state == MLK_HEAP_USED && !taken && !was_freed(&sweep, &b))
			older->blocks[kept++] = b;
		else if (b.state == MLK_HEAP_USED && next < nr && recorded[next].start == b.address)
			err = add_known(older, &b, &recorded[next]);
		else if (is_free(&b) && !taken)
			err = freed_add(freed, b.address, b.address + b.size);
	}
	older->nr = kept;
	free(sweep.areas);
	return err;
}

void older_release(struct older *older)
{
	free(older->blocks);
	free(older->known);
	free(older->arenas);
	*older = (struct older){0};
}
