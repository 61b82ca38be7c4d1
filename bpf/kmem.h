/* kmem.h - what the programs on the kernel's allocations and the recorder share
 *
 * A block is an object of a slab cache, of kmalloc, a run of pages or percpu memory.  The programs
 * keep a table of those that were allocated since the recording began and that live.  The recorder
 * goes through it from time to time, and so writes only blocks that lived to see it.
 */
#ifndef MLEAK_BPF_KMEM_H
#define MLEAK_BPF_KMEM_H

#include <linux/types.h>

#define KMEM_STACK_DEPTH 64    /* frames, innermost first, with those of the programs themselves */
#define KMEM_STACKS	 16384 /* distinct ones that are kept; twice as many are not in one map */
#define KMEM_SPARE	 8192  /* those that fall on another's place in the first map */
#define KMEM_COMM	 16

/* What allocated a block. */
enum kmem_kind {
	KMEM_KMALLOC = 1,
	KMEM_CACHE,
	KMEM_PAGES,
	KMEM_PERCPU,
	KMEM_KIND_NR,
};

/* Of kmem_block.stack: the number in the first map, or KMEM_STACKS and that in the second. */
#define KMEM_NO_STACK 0xffffffffu

/* What is known of a live block. */
struct kmem_block {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 size;    /* bytes that it takes, not that were asked for */
	__u64 part;    /* of these bytes: freed already, of pages */
	__u64 cache;   /* address of its struct kmem_cache; 0: none, or not told */
	__u64 cgroup;  /* id of the thread's cgroup in the unified hierarchy */
	__u32 stack;
	__u32 tgid, tid;
	__u32 gfp; /* allocation flags as the kernel has them */
	__u8 kind; /* enum kmem_kind */
	__u8 pad[7];
	char comm[KMEM_COMM];
};

/* An event in the ring. */
enum kmem_event_kind {
	KMEM_ALLOC = 1, /* with a block; where all events are asked for */
	KMEM_FREE,	/* of a block that was, or may have been, written */
	KMEM_SHRINK,	/* part of it was freed: so many bytes */
};

/* What all events begin with. */
struct kmem_event {
	__u32 kind; /* enum kmem_event_kind */
	__u32 tid;
	__u64 addr;
	__u64 time_ns;
	/* of the block: */
	__u64 alloc_ns; /* when it was allocated */
	__u64 size;	/* bytes; KMEM_SHRINK: those from addr on that were freed */
	__u64 cache;
	__u32 stack;
	__u32 block_kind; /* enum kmem_kind */
};

/* An allocation as it happens. */
struct kmem_alloc_event {
	struct kmem_event head; /* KMEM_ALLOC */
	struct kmem_block block;
};

/* What is counted, each since the recording began. */
enum kmem_count {
	KMEM_ALLOCATED,	      /* blocks, */
	KMEM_ALLOCATED_BYTES, /* and their bytes */
	KMEM_FREED,	      /* of these */
	KMEM_FREED_BYTES,
	KMEM_SHORT, /* blocks freed before the recorder looked */
	KMEM_SHORT_BYTES,
	KMEM_OLD_FREES, /* of blocks from before, or that are not recorded */
	KMEM_OWN,	/* mleak's own blocks, left out */
	KMEM_OWN_BYTES,
	KMEM_FILTERED, /* left out by size, process or cgroup */
	KMEM_FILTERED_BYTES,
	KMEM_UNSAMPLED, /* not among the sample */
	KMEM_UNSAMPLED_BYTES,
	KMEM_REUSED,	      /* the address was allocated again: the free was not seen */
	KMEM_LOST_FULL,	      /* allocations: the table of blocks is full */
	KMEM_LOST_BUSY,	      /* allocations: the table was locked by what was interrupted */
	KMEM_LOST_FREES,      /* frees: the table was locked */
	KMEM_RESCUED,	      /* frees that the second program saw in place of the first */
	KMEM_LOST_STACK,      /* stacks that found no room, or could not be taken */
	KMEM_LOST_RING,	      /* frees that found the ring full */
	KMEM_LOST_RING_ALLOC, /* allocations that found it full */
	KMEM_COUNT_NR,
};

/* For the program that reads the kernel's memory. */
enum kmem_read_kind { KMEM_READ_BYTES, KMEM_READ_CACHE_NAME };

/* What the program read_memory is asked for, and its answer. */
struct kmem_read {
	__u64 at;   /* in: the address, or that of a struct kmem_cache */
	__u32 kind; /* in: enum kmem_read_kind */
	__s32 err;  /* negative: it cannot be read */
	char bytes[64];
};

#endif
