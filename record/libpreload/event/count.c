/* count.c - threads that are only counted, until they are recorded: what becomes of each block
 *
 * As bpf/filter.h does it: all sums are kept of all blocks, sent or not, and the free of a block
 * that was not sent is not sent either.
 */
#include "record/libpreload/event/sums.h"

/* Blocks that were sent are not in the table: any free may be of one. */
static bool some_unkept;

void preload_count_begin(struct preload_header *h)
{
	sums_get();
	sums_own(h);
}

void preload_count_skip(struct preload_header *h, enum event_skip why, uint64_t bytes)
{
	sums_skip(h, sums_own(h), why, bytes);
}

void preload_count_child(void)
{
	preload_self.counter = (struct preload_counter){0};
	sums_child();
}

/* A block was kept at the address of a new one: its free was not seen. */
static void free_unseen(struct preload_header *h, struct preload_account *own,
			const struct block_info *old)
{
	if (old->state == BLOCK_UNKNOWN)
		return;
	sums_change(h, own, old, -(int64_t)old->size);
	sums_free(h, own, old, 1, old->size);
}

/* Keep @block.  Nothing is known of those that find no place: it is in no sum any more. */
static bool keep_block(struct preload_header *h, struct preload_account *own, uint64_t addr,
		       const struct block_info *block)
{
	struct process_sums *s = sums_get();
	struct block_info old;

	if (LIKELY(s && block_table_put(&s->blocks, addr, block, &old))) {
		free_unseen(h, own, &old);
		return true;
	}
	sums_skip(h, own, EVENT_SKIP_UNKEPT, block->size);
	sums_change(h, own, block, -(int64_t)block->size);
	return false;
}

static bool take_block(uint64_t addr, struct block_info *block)
{
	struct process_sums *s = sums_get();

	block->state = BLOCK_UNKNOWN;
	return s && block_table_take(&s->blocks, addr, block);
}

/* The thread that allocates has no account.  Returns whether that is to be recorded: where it may
 * not ask who it is, it has no ring either, and then it counts as lost. */
static bool leave_out(struct preload_header *h, uint64_t size)
{
	if (preload_no_calls())
		return true;
	sums_skip(h, NULL, EVENT_SKIP_TRIGGER, size);
	sums_skip(h, NULL, EVENT_SKIP_UNKEPT, size);
	return false;
}

bool preload_count_alloc(struct preload_header *h, enum event_func func, const void *addr,
			 size_t size, uint64_t pc)
{
	struct preload_account *own = sums_own(h);
	struct block_info block = {.size = size, .state = BLOCK_SENT};
	bool mapped = func == FUNC_MMAP || func == FUNC_MREMAP;

	if (UNLIKELY(!own))
		return leave_out(h, size);
	block.tid = preload_self.counter.tid;
	block.generation = sums_generation();
	if (!sums_add(h, own, &block, pc)) {
		block.state = BLOCK_COUNTED;
		sums_skip(h, own, EVENT_SKIP_TRIGGER, size);
	} else if (preload_settings.filter.samples && !preload_sample_takes(h, size)) {
		block.state = BLOCK_LEFT_OUT;
		sums_skip(h, own, EVENT_SKIP_SAMPLE, size);
	}
	if (!keep_block(h, own, (uint64_t)addr, &block)) {
		/* What unmaps it is sent in any case. */
		if (block.state == BLOCK_SENT && !mapped)
			__atomic_store_n(&some_unkept, true, __ATOMIC_RELEASE);
	} else if (block.state == BLOCK_COUNTED) {
		sums_count(&own->sums.counted.nr, 1);
		sums_count(&own->sums.counted.bytes, size);
	}
	return block.state == BLOCK_SENT;
}

/* A realloc failed: what it released at @addr lives.  Returns whether that is to be sent. */
static bool restore(struct preload_header *h, uint64_t addr)
{
	struct preload_counter *c = &preload_self.counter;
	struct preload_account *own = sums_own(h);
	struct block_info block = c->released;

	/* Of what was unmapped nothing was released. */
	if (!c->released_addr)
		return true;
	if (c->released_addr != addr || block.state == BLOCK_UNKNOWN)
		return false;
	c->released_addr = 0;
	sums_change(h, own, &block, (int64_t)block.size);
	sums_free(h, own, &block, (uint64_t)-1, -block.size);
	if (!keep_block(h, own, addr, &block))
		sums_free(h, own, &block, 1, block.size);
	return block.state == BLOCK_SENT;
}

/* [@addr, @addr + @size) is unmapped: of a mapping that begins there only the rest is left.  What
 * does not reach its beginning is not taken off. */
static void unmap(struct preload_header *h, uint64_t addr, uint64_t size)
{
	struct preload_account *own = sums_own(h);
	struct block_info rest;

	if (!take_block(addr, &rest))
		return;
	if (rest.size <= size) {
		sums_change(h, own, &rest, -(int64_t)rest.size);
		sums_free(h, own, &rest, 1, rest.size);
		return;
	}
	sums_change(h, own, &rest, -(int64_t)size);
	sums_free(h, own, &rest, 0, size);
	rest.size -= size;
	if (!keep_block(h, own, addr + size, &rest))
		sums_free(h, own, &rest, 1, rest.size);
}

/* Nothing is known of a block that is freed: returns whether that is sent, as one that is unsure.
 */
static bool free_unknown(struct preload_header *h, enum event_type *type, bool *unsure)
{
	if (LIKELY(!__atomic_load_n(&some_unkept, __ATOMIC_ACQUIRE))) {
		sums_skip(h, sums_own(h), EVENT_SKIP_FREE, 0);
		return false;
	}
	*type = EVENT_FREE;
	*unsure = true;
	return true;
}

static bool free_block(struct preload_header *h, enum event_type *type, uint64_t addr, bool *unsure)
{
	struct preload_counter *c = &preload_self.counter;
	struct preload_account *own = sums_own(h);
	struct block_info block;
	bool known = take_block(addr, &block);

	if (*type == EVENT_RELEASE) {
		c->released = block;
		c->released_addr = addr;
	}
	if (!known)
		return free_unknown(h, type, unsure);
	sums_change(h, own, &block, -(int64_t)block.size);
	sums_free(h, own, &block, 1, block.size);
	if (block.state != BLOCK_SENT)
		sums_skip(h, own, EVENT_SKIP_FREE, 0);
	return block.state == BLOCK_SENT;
}

bool preload_count_free(struct preload_header *h, enum event_type *type, uint64_t addr,
			uint64_t size, bool *unsure)
{
	if (*type == EVENT_RESTORE)
		return restore(h, addr);
	preload_self.counter.released_addr = 0;
	if (*type == EVENT_UNMAP)
		unmap(h, addr, size);
	return (*type != EVENT_FREE && *type != EVENT_RELEASE) || free_block(h, type, addr, unsure);
}
