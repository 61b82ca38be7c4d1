/* live_ranges.c - what mmap gave out can be unmapped in parts: each piece that is left is a block
 */
#include "report/live/live_state.h"

#define PAGE_SIZE 4096u /* unmapping rounds up to it; x86-64 */

/* Put back what lies of @block in [@start, @end). */
static int put_piece(struct live *live, struct process *process, const struct live_block *block,
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
		live_add(live, LIVE_OUTSTANDING, &piece);
	return err;
}

/* Cut [@start, @end) out of a block of mmap.  Returns 1 with what was cut out in *@cut, 0 when none
 * is left that overlaps, or -ENOMEM. */
static int cut(struct live *live, struct process *process, uint64_t start, uint64_t end,
	       struct live_block *cut)
{
	struct live_block block;
	uint64_t block_end;
	int err;

	if (!range_map_take(&process->ranges, start, end, &block))
		return 0;
	block_end = range_end(&block);
	live_subtract(live, LIVE_OUTSTANDING, &block);
	*cut = block;
	cut->addr = block.addr > start ? block.addr : start;
	cut->size = (block_end < end ? block_end : end) - cut->addr;
	cut->part = cut->size < block.size;
	if (cut->addr > block.addr && block_end > end)
		live_add_block(live, LIVE_ALLOCATED, &block);
	err = put_piece(live, process, &block, block.addr, cut->addr);
	if (!err)
		err = put_piece(live, process, &block, end, block_end);
	return err ? err : 1;
}

int live_on_map(struct live *live, struct process *process, struct live_block *block)
{
	struct live_block old;
	int err;

	block->size = range_end(block) - block->addr;
	if (!block->size)
		return 0; /* no mapping is empty */
	while ((err = cut(live, process, block->addr, range_end(block), &old)) > 0)
		live_add_part(live, LIVE_IMPLIED, &old);
	live_add(live, LIVE_ALLOCATED, block);
	return err ? err : put_piece(live, process, block, block->addr, range_end(block));
}

int live_on_unmap(struct live *live, struct process *process, const struct mlk_event *event)
{
	uint64_t end = event->addr + event->size;
	struct live_block old;
	uint32_t n = 0;
	int err;

	end = end < event->addr || end > UINT64_MAX - PAGE_SIZE
		      ? UINT64_MAX
		      : (end + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
	/* First the range itself, by which its RESTORE knows it. */
	old = (struct live_block){.addr = event->addr, .mapped = true};
	err = block_map_put(&process->pending, live_pending_key(event->tid, n++), &old);
	if (err)
		return err;
	while ((err = cut(live, process, event->addr, end, &old)) > 0) {
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
		if (block.part)
			live_add_block(live, LIVE_ALLOCATED, &block);
		block.part = false;
		err = put_piece(live, process, &block, block.addr, range_end(&block));
	}
	return err;
}
