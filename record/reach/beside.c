/* beside.c - see beside.h */
#include "record/reach/beside.h"

#include <stdlib.h>
#include <unistd.h>

#include "record/base/clock.h"

void beside_begin(struct reach_beside *b, bool heap)
{
	*b = (struct reach_beside){.smaps_fd = -1};
	if (heap)
		b->heap_err = heap_begin(&b->heap);
}

/* Walk through the allocator's memory, or look at it, as @how does. */
static void walk_heap(struct reach_beside *b, const struct heap_place *place,
		      int (*how)(struct heap *heap, const struct heap_place *place))
{
	if (b->heap)
		b->heap_err = how(b->heap, place);
	if (b->heap && b->heap_err) {
		heap_end(b->heap);
		b->heap = NULL;
	}
}

void beside_before(struct reach_beside *b, const struct heap_place *place)
{
	if (!b->begun)
		walk_heap(b, place, heap_walk);
	b->begun = true;
}

void beside_after(struct reach_beside *b, const struct heap_place *place, bool last)
{
	walk_heap(b, place, heap_look_at_free);
	if (!last)
		return;
	walk_heap(b, place, heap_walk);
	b->smaps_ns = clock_now_ns();
	b->smaps_err = b->smaps_fd < 0 ? b->smaps_fd : smaps_read(&b->smaps, b->smaps_fd);
	if (!b->smaps_err)
		b->smaps_err = smaps_find_pages(&b->smaps, place->pagemap, place->stop);
}

static int write_heap(struct reach_beside *b, struct mlk_writer *w, const struct maps *maps,
		      uint32_t tgid, uint32_t snapshot)
{
	struct mlk_heap_block *blocks;
	struct mlk_heap heap;
	size_t nr;
	int err = heap_result(b->heap, maps, &heap, &blocks, &nr);

	heap.tgid = tgid;
	heap.snapshot = snapshot;
	heap.blocks = blocks;
	heap.nr = nr;
	if (!err)
		err = mlk_writer_heap(w, &heap);
	free(blocks);
	return err;
}

int beside_write(struct reach_beside *b, struct mlk_writer *w, const struct maps *maps,
		 uint32_t tgid, uint32_t snapshot)
{
	int err = b->heap ? write_heap(b, w, maps, tgid, snapshot) : 0;

	for (size_t i = 0; i < b->smaps.nr; i++) {
		b->smaps.all[i].tgid = tgid;
		b->smaps.all[i].snapshot = snapshot;
		b->smaps.all[i].time_ns = b->smaps_ns;
	}
	return err || b->smaps_err ? err : mlk_writer_smaps(w, b->smaps.all, b->smaps.nr);
}

void beside_end(struct reach_beside *b)
{
	heap_end(b->heap);
	smaps_release(&b->smaps);
	if (b->smaps_fd >= 0)
		close(b->smaps_fd);
}
