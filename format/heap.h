/* heap.h - the blocks of a process's allocator, as a walk from outside found them:
 * doc/trace-format.md 4.20
 *
 * Nobody recorded their allocations.  A walk is one or more HEAP chunks behind the passes of its
 * snapshot; the last one has its sums.
 */
#ifndef MLK_HEAP_H
#define MLK_HEAP_H

#include <stddef.h>
#include <stdint.h>

#define MLK_MAX_HEAP_BLOCKS (1u << 16) /* of a chunk */
#define MLK_MAX_HEAP_ARENAS 65536u

/* What a block was at the walks of its snapshot. */
enum mlk_heap_state {
	MLK_HEAP_USED = 0,    /* in use at all of them, and its contents did not change */
	MLK_HEAP_CHANGED = 1, /* in use at the last one, but not the same before */
	MLK_HEAP_CACHED = 2,  /* free, in a thread's cache */
	MLK_HEAP_FAST = 3,    /* free, in a list of its size */
	MLK_HEAP_FREE = 4,    /* free, between others */
	MLK_HEAP_TOP = 5,     /* never given out yet, or given back: the end of an arena */
	MLK_HEAP_OWN = 6,     /* the allocator's own */
	MLK_HEAP_STATES
};

/* A block as the program knows it: from the address that malloc returned to the last byte that it
 * may use. */
struct mlk_heap_block {
	uint64_t address; /* a multiple of 8 */
	uint64_t size;	  /* bytes */
	uint64_t first;	  /* its first word, if that points into a mapped file; else 0 */
	uint8_t state;	  /* enum mlk_heap_state */
};

/* Memory in which the allocator keeps its lists: its words hold no block. */
struct mlk_heap_arena {
	uint64_t address, length; /* bytes */
};

/* Bits of mlk_heap.flags. */
enum mlk_heap_flag {
	MLK_HEAP_LAST = 1, /* the walk is complete with this chunk */
};

/* A part of a walk; blocks ascend, do not overlap, and lie behind those of the part before. */
struct mlk_heap {
	uint32_t tgid;
	uint32_t snapshot;	   /* as in struct mlk_pass */
	uint32_t flags;		   /* enum mlk_heap_flag */
	const char *allocator;	   /* "glibc 2.36"; "": none that is known */
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC, of the first walk and of the last one */
	uint64_t unwalked;	   /* with MLK_HEAP_LAST: bytes of it that could not be walked */
	size_t nr_arenas, nr;
	const struct mlk_heap_arena *arenas; /* with MLK_HEAP_LAST; borrowed as mlk_pointers */
	const struct mlk_heap_block *blocks;
};

#endif
