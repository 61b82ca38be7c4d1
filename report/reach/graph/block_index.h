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
	unsigned int shift;    /* a page has so many bits: fewer where blocks are small */
	struct page_run *runs; /* of pages that follow each other; ascending */
	size_t nr_runs;
	uint32_t *first; /* of each page in a run: the block's number, plus one; 0: none */
	size_t nr_pages;
	uint32_t *large; /* those of many pages: not among the pages */
	size_t nr_large;
};

/* Index @blocks, fewer than BLOCK_INDEX_NONE.  To be released in any case.  Returns 0 or -ENOMEM.
 */
int block_index_make(struct block_index *index, const struct reach_block *blocks, size_t nr);

/* The number of the block that holds @address, or BLOCK_INDEX_NONE. */
uint32_t block_index_find(const struct block_index *index, uint64_t address);

#define BLOCK_INDEX_MOST 64 /* addresses at once */

/* The same of @nr addresses, at most BLOCK_INDEX_MOST, which is faster than one by one: their
 * blocks are fetched from memory at the same time. */
void block_index_find_all(const struct block_index *index, const uint64_t *addresses, size_t nr,
			  uint32_t *found);

/* Forget all. */
void block_index_release(struct block_index *index);

#endif
