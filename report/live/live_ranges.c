/* live_ranges.c - what mmap gave out can be unmapped in parts: each piece that is left is a block
 */
#include <errno.h>

#include "report/live/live_state.h"

#define PAGE_SIZE 4096u /* unmapping rounds up to it; x86-64 */

int live_put_piece(struct live *live, struct process *process, const struct live_block *block,
		   uint64_t start, uint64_t end)
{
	struct live_block piece = *block;
	int err;

	if (start >= end)
		return 0;
	piece.addr = start;
	piece.size = end - start;
	err = range_map_put(&process->ranges, &piece);
	if (!err)
		live_add_piece(live, &piece);
	return err;
}

int live_cut_range(struct live *live, struct process *process, uint64_t start, uint64_t end,
		   struct live_block *cut)
{
	struct live_block block;
	uint64_t block_end;
	int err;

	if (!range_map_take(&process->ranges, start, end, &block))
		return 0;
	block_end = range_end(&block);
	live_subtract_piece(live, &block);
	*cut = block;
	cut->addr = block.addr > start ? block.addr : start;
	cut->size = (block_end < end ? block_end : end) - cut->addr;
	cut->part = cut->size < block.size;
	if (block.use == LIVE_IN_USE && cut->addr > block.addr && block_end > end)
		live_add_block(live, LIVE_ALLOCATED, &block);
	err = live_put_piece(live, process, &block, block.addr, cut->addr);
	if (!err)
		err = live_put_piece(live, process, &block, end, block_end);
	return err ? err : 1;
}

int live_on_map(struct live *live, struct process *process, struct live_block *block)
{
	struct live_block old;
	int err;

	block->size = range_end(block) - block->addr;
	if (!block->size)
		return 0; /* no mapping is empty */
	while ((err = live_cut_range(live, process, block->addr, range_end(block), &old)) > 0)
		if (old.use == LIVE_IN_USE)
			live_add_part(live, LIVE_IMPLIED, &old);
	if (block->use == LIVE_IN_USE)
		live_add(live, LIVE_ALLOCATED, block);
	return err ? err : live_put_piece(live, process, block, block->addr, range_end(block));
}

uint64_t live_end_of_pages(const struct mlk_event *event)
{
	uint64_t end = event->addr + event->size;

	return end < event->addr || end > UINT64_MAX - PAGE_SIZE
		       ? UINT64_MAX
		       : (end + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
}

int live_on_unmap(struct live *live, struct process *process, const struct mlk_event *event)
{
	uint64_t end = live_end_of_pages(event);
	struct live_block old;
	uint32_t n = 0;
	int err;

	/* First the range itself, by which its RESTORE knows it. */
	old = (struct live_block){.addr = event->addr, .mapped = true};
	err = block_map_put(&process->pending, live_pending_key(event->tid, n++), &old);
	if (err)
		return err;
	while ((err = live_cut_range(live, process, event->addr, end, &old)) > 0) {
		err = block_map_put(&process->pending, live_pending_key(event->tid, n++), &old);
		if (err)
			return err;
	}
	return err;
}

int live_put_back(struct live *live, struct process *process, uint32_t tid)
{
	struct live_block block;
	int err = 0;

	for (uint32_t n = 1;
	     !err && block_map_take(&process->pending, live_pending_key(tid, n), &block); n++) {
		if (block.part && block.use == LIVE_IN_USE)
			live_add_block(live, LIVE_ALLOCATED, &block);
		block.part = false;
		err = live_put_piece(live, process, &block, block.addr, range_end(&block));
	}
	return err;
}
