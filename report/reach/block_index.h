/* block_index.h - which block holds an address, of millions of blocks and for each pointer */
#ifndef REPORT_BLOCK_INDEX_H
#define REPORT_BLOCK_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define BLOCK_INDEX_NONE UINT32_MAX

/* A block of memory, [start, end). */
struct reach_block {
	uint64_t start, end;
	uint64_t time_ns; /* CLOCK_MONOTONIC, when it was allocated */
};

/* Blocks, and for each page, a piece of memory, the first one that reaches into it.  All zero:
 * none. */
struct block_index {
	const struct reach_block *blocks; /* ascending, not overlapping; borrowed */
	size_t nr;
	struct page_slot *slots;
	size_t nr_slots;    /* zero or a power of two */
	unsigned int shift; /* a page has so many bits: fewer where blocks are small */
	uint32_t *large;    /* those of many pages: not among the slots */
	size_t nr_large;
};

/* Index @blocks, fewer than BLOCK_INDEX_NONE.  To be released in any case.  Returns 0 or -ENOMEM.
 */
int block_index_make(struct block_index *index, const struct reach_block *blocks, size_t nr);

/* The number of the block that holds @address, or BLOCK_INDEX_NONE. */
uint32_t block_index_find(const struct block_index *index, uint64_t address);

/* A look for @address is to come soon: have its slot brought near meanwhile; and somewhat later, by
 * the second one, its block. */
void block_index_expect(const struct block_index *index, uint64_t address);
void block_index_expect_block(const struct block_index *index, uint64_t address);

/* Forget all. */
void block_index_release(struct block_index *index);

#endif
