/* block_table.h - the blocks that live, and what their frees must know of them
 *
 * A table without locks: a handler, a jump out of one, or a fork may come between any two
 * instructions, and then at most the place is lost that was being filled or emptied.  A block is in
 * one of two lines of eight places, in that which was emptier; so nearly all places are used before
 * a block finds none.
 */
#ifndef LIBPRELOAD_BLOCK_TABLE_H
#define LIBPRELOAD_BLOCK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_LINE  8u	       /* places */
#define BLOCK_LINES (1u << 17) /* a power of two */
/* Bits of block_info.generation, which leaves 50 to the size: no process has so much memory. */
#define BLOCK_GENERATION_BITS 12
#define BLOCK_TAKEN	      1ull /* in the place of an address: a thread is filling or emptying it */

/* What became of a block. */
enum block_state {
	BLOCK_UNKNOWN,
	BLOCK_SENT,
	BLOCK_COUNTED,	/* its thread was only counted */
	BLOCK_LEFT_OUT, /* it is not in the sample */
};

/* A block. */
struct block_info {
	uint64_t size;	     /* bytes */
	uint32_t tid;	     /* of the thread that allocated it */
	uint32_t site;	     /* as sums_add() sets it; 0: it is in no sum of a site */
	uint8_t state;	     /* enum block_state */
	uint16_t generation; /* of the process that allocated it, see sums.c */
};

/* All zero: empty. */
struct block_table {
	uint64_t addrs[BLOCK_LINES][BLOCK_LINE]; /* 0: free */
	struct block_kept {
		uint64_t size; /* moved up, and below that the others */
		uint32_t tid, site;
	} kept[BLOCK_LINES][BLOCK_LINE];
};

/* Keep @block, which begins at @addr; what was kept of a block there goes to *@old, whose state is
 * BLOCK_UNKNOWN otherwise.  False: there is no room. */
bool block_table_put(struct block_table *t, uint64_t addr, const struct block_info *block,
		     struct block_info *old);

/* Take the block at @addr out, into *@block.  False: there is none. */
bool block_table_take(struct block_table *t, uint64_t addr, struct block_info *block);

#endif
