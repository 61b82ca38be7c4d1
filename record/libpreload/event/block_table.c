/* block_table.c - see block_table.h */
#include "record/libpreload/event/block_table.h"

#define STATE_BITS 2
#define SIZE_SHIFT (STATE_BITS + BLOCK_GENERATION_BITS)

static uint32_t line_of(uint64_t addr, uint32_t second)
{
	uint64_t hash = addr * 0x9e3779b97f4a7c15;
	uint32_t a = (uint32_t)(hash >> 47), b = (uint32_t)(hash >> 30) & (BLOCK_LINES - 1);

	return !second ? a : b != a ? b : a ^ 1;
}

static struct block_kept pack(const struct block_info *b)
{
	return (struct block_kept){b->size << SIZE_SHIFT | (uint64_t)b->generation << STATE_BITS |
					   b->state,
				   b->tid, b->site};
}

static struct block_info unpack(const struct block_kept *k)
{
	uint64_t rest = k->size & ((1u << SIZE_SHIFT) - 1);

	return (struct block_info){.size = k->size >> SIZE_SHIFT,
				   .tid = k->tid,
				   .site = k->site,
				   .state = rest & ((1u << STATE_BITS) - 1),
				   .generation = (uint16_t)(rest >> STATE_BITS)};
}

/* Make @slot, which has @from, this thread's.  False: another one was faster. */
static bool claim(uint64_t *slot, uint64_t from)
{
	return __atomic_compare_exchange_n(slot, &from, BLOCK_TAKEN, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* Take the block at @addr out of @line, and leave @to in its place. */
static bool replace(struct block_table *t, uint32_t line, uint64_t addr, uint64_t to,
		    const struct block_kept *by, struct block_info *old)
{
	for (uint32_t i = 0; i < BLOCK_LINE; i++) {
		uint64_t *slot = &t->addrs[line][i];

		if (__atomic_load_n(slot, __ATOMIC_RELAXED) != addr || !claim(slot, addr))
			continue;
		*old = unpack(&t->kept[line][i]);
		if (by)
			t->kept[line][i] = *by;
		__atomic_store_n(slot, to, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

static uint32_t free_in(const struct block_table *t, uint32_t line)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < BLOCK_LINE; i++)
		nr += !__atomic_load_n(&t->addrs[line][i], __ATOMIC_RELAXED);
	return nr;
}

static bool fill(struct block_table *t, uint32_t line, uint64_t addr, const struct block_kept *kept)
{
	for (uint32_t i = 0; i < BLOCK_LINE; i++) {
		uint64_t *slot = &t->addrs[line][i];

		if (__atomic_load_n(slot, __ATOMIC_RELAXED) || !claim(slot, 0))
			continue;
		t->kept[line][i] = *kept;
		__atomic_store_n(slot, addr, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

bool block_table_put(struct block_table *t, uint64_t addr, const struct block_info *block,
		     struct block_info *old)
{
	uint32_t a = line_of(addr, 0), b = line_of(addr, 1), better = a;
	struct block_kept kept = pack(block);

	old->state = BLOCK_UNKNOWN;
	if (replace(t, a, addr, addr, &kept, old) || replace(t, b, addr, addr, &kept, old))
		return true;
	if (free_in(t, b) > free_in(t, a))
		better = b;
	return fill(t, better, addr, &kept) || fill(t, better == a ? b : a, addr, &kept);
}

bool block_table_take(struct block_table *t, uint64_t addr, struct block_info *block)
{
	return replace(t, line_of(addr, 0), addr, 0, NULL, block) ||
	       replace(t, line_of(addr, 1), addr, 0, NULL, block);
}
