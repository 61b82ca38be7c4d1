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

/* Where the mapping of @size at @addr ends. */
static uint64_t end_of(uint64_t addr, uint64_t size)
{
	return (addr + size + 4095) & ~4095ull;
}

/* Keep that the mapping which ends at @end begins at @addr: it may be unmapped from its end.  No
 * block has an odd address. */
static void keep_end(struct preload_header *h, uint64_t addr, uint64_t end)
{
	const struct block_info begin = {.size = addr, .state = BLOCK_LEFT_OUT};
	struct process_sums *s = sums_get();
	struct block_info old;

	if (!s || !block_table_put(&s->blocks, end | 1, &begin, &old))
		sums_skip(h, sums_own(h), EVENT_SKIP_UNKEPT, 0);
}

/* @block is only counted, of a thread that has no account: it is in no sum any more. */
static bool leave_out(struct preload_header *h, const struct block_info *block)
{
	sums_skip(h, NULL, EVENT_SKIP_TRIGGER, block->size);
	sums_skip(h, NULL, EVENT_SKIP_UNKEPT, block->size);
	sums_change(h, NULL, block, -(int64_t)block->size);
	return false;
}

bool preload_count_alloc(struct preload_header *h, enum event_func func, const void *addr,
			 size_t size, const struct caller *at)
{
	struct preload_account *own = sums_own(h);
	bool reserved = (uint32_t)func & FUNC_RESERVED;
	/* what is reserved is not outstanding */
	struct block_info block = {.size = reserved ? 0 : size, .state = BLOCK_SENT};
	bool mapped = reserved || func == FUNC_MMAP || func == FUNC_MREMAP;

	/* Who may not ask who it is has no ring either, and then this counts as lost. */
	if (UNLIKELY(!own) && preload_no_calls())
		return true;
	block.tid = preload_self.counter.tid;
	block.generation = sums_generation();
	if (!sums_add(h, own, &block, at)) {
		block.state = BLOCK_COUNTED;
		if (UNLIKELY(!own))
			return leave_out(h, &block);
		sums_skip(h, own, EVENT_SKIP_TRIGGER, block.size);
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
		sums_count(&own->sums.counted.bytes, block.size);
	}
	if (UNLIKELY(mapped && !reserved))
		keep_end(h, (uint64_t)addr, end_of((uint64_t)addr, size));
	return block.state == BLOCK_SENT;
}

/* An mremap failed: what it took off the mappings from @addr on is there. */
static void restore_unmapped(struct preload_header *h, uint64_t addr)
{
	struct preload_counter *c = &preload_self.counter;
	struct preload_account *own = sums_own(h);
	uint32_t nr = c->unmapped_addr == addr ? c->nr_unmapped : 0;

	c->nr_unmapped = 0;
	for (uint32_t i = 0; i < nr && i < PRELOAD_MOST_UNMAPPED; i++) {
		const struct preload_unmapped *u = &c->unmapped[i];
		const struct block_info *block = &u->block;
		struct block_info rest;

		if (u->rest)
			take_block(u->rest, &rest);
		sums_change(h, own, block, (int64_t)u->bytes);
		sums_free(h, own, block, u->rest ? 0 : (uint64_t)-1, -u->bytes);
		if (!keep_block(h, own, u->addr, block))
			sums_free(h, own, block, 1, block->size);
		else if (block->size)
			keep_end(h, u->addr, end_of(u->addr, block->size));
	}
}

/* A realloc failed: what it released at @addr lives.  Returns whether that is to be sent. */
static bool restore(struct preload_header *h, uint64_t addr)
{
	struct preload_counter *c = &preload_self.counter;
	struct preload_account *own = sums_own(h);
	struct block_info block = c->released;

	/* What mremap unmaps is sent in any case. */
	if (!c->released_addr) {
		restore_unmapped(h, addr);
		return true;
	}
	if (c->released_addr != addr || block.state == BLOCK_UNKNOWN)
		return false;
	c->released_addr = 0;
	sums_change(h, own, &block, (int64_t)block.size);
	sums_free(h, own, &block, (uint64_t)-1, -block.size);
	if (!keep_block(h, own, addr, &block)) {
		sums_free(h, own, &block, 1, block.size);
		if (block.state == BLOCK_SENT)
			__atomic_store_n(&some_unkept, true, __ATOMIC_RELEASE);
	}
	return block.state == BLOCK_SENT;
}

/* @bytes of @block, the mapping at @addr, are taken off, and there is a @rest, unless it is 0. */
static void note_unmapped(uint64_t addr, const struct block_info *block, uint64_t bytes,
			  uint64_t rest)
{
	struct preload_counter *c = &preload_self.counter;
	uint32_t nr = c->nr_unmapped;

	if (nr >= PRELOAD_MOST_UNMAPPED)
		return;
	c->unmapped[nr] = (struct preload_unmapped){addr, *block, bytes, rest};
	c->nr_unmapped = nr + 1;
}

/* Take @bytes off @block, the mapping at @addr, and keep the rest at @to. */
static void cut(struct preload_header *h, struct preload_account *own, uint64_t addr,
		const struct block_info *block, uint64_t bytes, uint64_t to)
{
	struct block_info rest = *block;

	sums_change(h, own, block, -(int64_t)bytes);
	sums_free(h, own, block, 0, bytes);
	rest.size -= bytes;
	if (!keep_block(h, own, to, &rest)) {
		sums_free(h, own, &rest, 1, rest.size);
		return;
	}
	keep_end(h, to, end_of(to, rest.size));
	note_unmapped(addr, block, bytes, to);
}

/* [@addr, @addr + @size) is unmapped, where no mapping begins: if one ends there, what is left of
 * it ends at @addr.  A part from its middle is not taken off. */
static void unmap_end(struct preload_header *h, uint64_t addr, uint64_t size)
{
	struct preload_account *own = sums_own(h);
	uint64_t end = end_of(addr, size);
	struct block_info begin, block;

	if (!take_block(end | 1, &begin))
		return;
	if (begin.size >= addr) {
		keep_end(h, begin.size, end); /* more of it is unmapped than there is */
		return;
	}
	if (!take_block(begin.size, &block))
		return;
	/* what began there may be another one by now */
	if (begin.size + block.size > addr && end_of(begin.size, block.size) == end)
		cut(h, own, begin.size, &block, begin.size + block.size - addr, begin.size);
	else if (!keep_block(h, own, begin.size, &block))
		sums_free(h, own, &block, 1, block.size);
}

/* [@addr, @addr + @size) is unmapped: of a mapping that begins there only the rest is left.
 * Returns how many bytes are done with. */
static uint64_t unmap_first(struct preload_header *h, uint64_t addr, uint64_t size)
{
	struct preload_account *own = sums_own(h);
	struct block_info block, end;

	if (!take_block(addr, &block)) {
		unmap_end(h, addr, size);
		return size;
	}
	if (block.size > size) {
		cut(h, own, addr, &block, size, addr + size);
		return size;
	}
	sums_change(h, own, &block, -(int64_t)block.size);
	sums_free(h, own, &block, 1, block.size);
	note_unmapped(addr, &block, block.size, 0);
	if (!block.size)
		return size; /* how long it was is not known, nor is its end kept */
	take_block(end_of(addr, block.size) | 1, &end);
	return end_of(addr, block.size) - addr;
}

/* [@addr, @addr + @size) is unmapped, and all mappings that lie there one behind the other. */
static void unmap(struct preload_header *h, uint64_t addr, uint64_t size)
{
	uint64_t done = 0;

	preload_self.counter.unmapped_addr = addr;
	preload_self.counter.nr_unmapped = 0;
	for (uint32_t i = 0; i < PRELOAD_MOST_UNMAPPED && done < size; i++)
		done += unmap_first(h, addr + done, size - done);
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
	preload_self.counter.nr_unmapped = 0;
	if (*type == EVENT_UNMAP)
		unmap(h, addr, size);
	return (*type != EVENT_FREE && *type != EVENT_RELEASE) || free_block(h, type, addr, unsure);
}
