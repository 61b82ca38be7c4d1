/* kmem_table.h - the table of live blocks
 *
 * Included by kmem.bpf.c only.  A block is in one of KMEM_PLACES places, nearly always in the
 * first, and there is no lock: what interrupts a program, or runs beside it, finds the table as it
 * should be.  The recorder maps the table, and reads what is in it.
 */
#ifndef MLEAK_BPF_KMEM_TABLE_H
#define MLEAK_BPF_KMEM_TABLE_H

#include "bpf/kmem_state.h"

/* The live blocks that were allocated since the recording began. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << 20); /* the recorder sets it, to a power of 2 */
	__type(key, __u32);
	__type(value, struct kmem_block);
} blocks SEC(".maps");

/* By page of the table: a place was filled. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, (1 << 20) / KMEM_PAGE); /* the recorder sets it */
	__type(key, __u32);
	__type(value, __u8);
} filled SEC(".maps");

const volatile __u32 table_bits = 20; /* of the number of places */

#define TABLE_HASH(addr) ((addr)*0x9e3779b97f4a7c15ull)
#define NEAR_SHIFT	 5 /* blocks that are so near each other share a place of the first run */
#define NEAR_BITS	 12

/* The number of the place @n of the block at @addr.  The first ones keep neighbours together: what
 * is allocated in a row is in a few pages of the table.  The others are anywhere, each by itself,
 * as neighbours of a full place are likely to be full. */
static __always_inline __u32 place_number(__u64 addr, __u32 n)
{
	__u64 number = addr >> NEAR_SHIFT, hash;

	if (n < KMEM_RUN) {
		hash = TABLE_HASH(addr >> (NEAR_SHIFT + NEAR_BITS)) >> 32;
		number = (number & ((1 << NEAR_BITS) - 1)) + (hash << NEAR_BITS) + n;
	} else {
		/* Not by the lower bits of the half: they bring addresses in a row together. */
		number = TABLE_HASH(addr + n) >> 40;
	}
	return (__u32)number & ((1u << table_bits) - 1);
}

/* The place of this number. */
static __always_inline struct kmem_block *place_at(__u32 number)
{
	return bpf_map_lookup_elem(&blocks, &number);
}

/* The block at @addr, or 0. */
static __noinline struct kmem_block *find_block(__u64 addr)
{
	struct kmem_block *b = place_at(place_number(addr, 0));
	__u32 reach;

	if (!b)
		return 0;
	if (b->addr == addr)
		return b;
	reach = b->reach;
	for (__u32 n = 1; n < KMEM_PLACES && reach >> n; n++) {
		if (!(reach >> n & 1))
			continue;
		b = place_at(place_number(addr, n));
		if (b && b->addr == addr)
			return b;
	}
	return 0;
}

/* Note at @home that a block that belongs there is at its place @n. */
static __always_inline void note_reach(struct kmem_block *home, __u32 n)
{
	/* With the number of a stack in one word, which this leaves as it is. */
	__u32 *word = (__u32 *)((char *)home + __builtin_offsetof(struct kmem_block, stack));

	if (!(home->reach >> n & 1))
		__sync_fetch_and_or(word, 0x10000u << n);
}

/* A place for the block at @addr, which is to be filled, and then to be given this address; where
 * there is one already, it is that.  0: all are taken.  *@is_new: there was none. */
static __noinline struct kmem_block *take_place(__u64 addr, int *is_new)
{
	__u32 number = place_number(addr, 0), page;
	struct kmem_block *home = place_at(number), *b;

	/* None that belongs here is elsewhere. */
	b = home && (home->addr || home->reach > 1) ? find_block(addr) : 0;
	*is_new = !b;
	if (b) {
		b->addr = KMEM_FILLED;
		return b;
	}
	for (__u32 n = 0; home && n < KMEM_PLACES; n++) {
		__u8 *f;

		number = place_number(addr, n);
		b = place_at(number);
		if (!b || b->addr || __sync_val_compare_and_swap(&b->addr, 0, KMEM_FILLED))
			continue;
		note_reach(home, n);
		page = number / KMEM_PAGE;
		f = bpf_map_lookup_elem(&filled, &page);
		if (f)
			*f = 1;
		return b;
	}
	return 0;
}

#endif
