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
#define KMEM_STACKS	 32768 /* distinct ones that are kept; twice as many are not in one map */
#define KMEM_SPARE	 16384 /* those that fall on another's place in the first map */
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
#define KMEM_NO_STACK 0xffffu

/* What is known of a live block, in a line of the processor's cache. */
struct kmem_block {
	__u64 addr;    /* of pages that of the first's struct page; 0: the slot is free */
	__u64 time_ns; /* CLOCK_MONOTONIC */
	union {
		__u64 cache; /* address of its struct kmem_cache; 0: none, or not told */
		__u64 part;  /* of pages: bytes that are freed already */
	};
	__u32 size;   /* bytes that it takes, not that were asked for */
	__u32 cgroup; /* id of the thread's cgroup in the unified hierarchy */
	__u32 tid;
	__u32 tgid : 24; /* less than PID_MAX_LIMIT: include/linux/threads.h */
	__u32 kind : 8;	 /* enum kmem_kind */
	__u32 gfp;	 /* allocation flags as the kernel has them */
	__u16 stack;
	__u16 reach; /* of the slot: the places where blocks that belong here may be, by bit */
	char comm[KMEM_COMM];
};

/* The table of blocks has places of one block.  A block is at one of so many, that follow from its
 * address; the first KMEM_RUN of these are in a row. */
#define KMEM_PLACES 16
#define KMEM_RUN    4
#define KMEM_FILLED 1 /* in place of an address: the place is being filled */

/* So many places are one page of the table: which of them were filled is noted. */
#define KMEM_PAGE 64

/* An event in the ring. */
enum kmem_event_kind {
	KMEM_ALLOC = 1, /* with a block; where all events are asked for */
	KMEM_FREE,	/* of a block that was, or may have been, written */
	KMEM_SHRINK,	/* part of it was freed: so many bytes */
	KMEM_SAMPLE,	/* a struct kmem_sample, which begins with the kind only */
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
	KMEM_ALLOCATED, /* blocks */
	KMEM_SHORT,	/* of these: freed before the recorder looked, */
	KMEM_SHORT_BYTES,
	KMEM_SENT,	/* or freed later; the free was sent */
	KMEM_OLD_FREES, /* of blocks from before, or that are not recorded */
	KMEM_OWN,	/* mleak's own blocks, left out */
	KMEM_OWN_BYTES,
	KMEM_FILTERED, /* left out by size, process or cgroup */
	KMEM_FILTERED_BYTES,
	KMEM_UNSAMPLED, /* not among the sample */
	KMEM_UNSAMPLED_BYTES,
	KMEM_REUSED,	      /* the address was allocated again: the free was not seen */
	KMEM_LOST_FULL,	      /* allocations: the table of blocks is full */
	KMEM_LOST_FREES,      /* frees: of more objects at once than are read */
	KMEM_LOST_STACK,      /* stacks that found no room, or could not be taken */
	KMEM_WALKED,	      /* stacks by the kernel's walk, */
	KMEM_CHECKED,	      /* among them of those that were known */
	KMEM_LOST_RING,	      /* frees that found the ring full */
	KMEM_LOST_RING_ALLOC, /* allocations that found it full */
	KMEM_LOST_USER,	      /* stacks of user space that found no room */
	KMEM_UNREAD_USER,     /* or that could not be read */
	KMEM_COUNT_NR,
};

/*
 * How a stack is known without the kernel's walk: its words are copied, and rules lead from return
 * address to return address, as the kernel's own tables do (ORC: Documentation/arch/x86/
 * orc-unwinder.rst).  The return addresses that they come by identify the stack.  The recorder
 * reads the tables, and gives rules for return addresses that occur.
 */
#define KMEM_RULES	16384 /* a power of 2 */
#define KMEM_RULE_BITS	14
#define KMEM_RULE_OTHER 1   /* a rule is at its place, or at the place with this bit changed */
#define KMEM_WORDS	512 /* of a stack; one that has more is walked */
#define KMEM_BELOW	16  /* of these: below the tracepoint's arguments, where the walk begins */

/* Where the rule of what returns to @pc is; of a tracepoint, by enum kmem_point, too. */
#define KMEM_RULE_AT(pc) ((__u32)(pc)*0x9e3779b1u >> (32 - KMEM_RULE_BITS))

/* What a rule holds above the lower half of the return address: the words from the stack pointer,
 * or from the frame pointer, to the CFA; where the caller's frame pointer is, in words below the
 * CFA, or from the frame pointer on, 0: it is still in the register; or what else is there. */
#define KMEM_RULE_WORDS(rule)	    ((__u32)((rule) >> 32) & 0x3ff)
#define KMEM_RULE_SAVED(rule)	    ((__u32)((rule) >> 42) & 0x3ff)
#define KMEM_RULE(pc, words, saved) ((__u64)(saved) << 42 | (__u64)(words) << 32 | (__u32)(pc))
#define KMEM_RULE_FP		    (1ull << 52) /* from the frame pointer */
#define KMEM_RULE_DRAP		    (1ull << 53) /* the CFA is in the word so many below the frame pointer */
#define KMEM_RULE_SAVED_AT	    (1ull << 54) /* the caller's is where the frame pointer points to */
#define KMEM_RULE_RARE		    (KMEM_RULE_FP | KMEM_RULE_DRAP | KMEM_RULE_SAVED_AT)
#define KMEM_RULE_END		    (1ull << 55) /* of the stack */
#define KMEM_RULE_REGS		    (1ull << 56) /* a struct pt_regs follows: of user space, or a signal's */

/* Words of struct pt_regs: arch/x86/include/asm/ptrace.h. */
enum {
	KMEM_REGS_FP = 4,
	KMEM_REGS_CX = 11,
	KMEM_REGS_PC = 16,
	KMEM_REGS_CS = 17,
	KMEM_REGS_SP = 19,
	KMEM_REGS_NR = 21
};

/* Where the walk begins: the rule of such a point has in place of the CFA the word that returns
 * from the program.  The one below is the frame pointer, which programs save first. */
enum kmem_point {
	KMEM_POINT_KMALLOC = 1,
	KMEM_POINT_KMALLOC_NODE,
	KMEM_POINT_CACHE,
	KMEM_POINT_CACHE_NODE,
	KMEM_POINT_PAGES,
	KMEM_POINT_PERCPU,
	KMEM_POINT_NR,
};

/* Places for what is copied of user space; a copy is at one of some places that follow from its
 * block's address. */
#define KMEM_USERS	 8192 /* a power of 2 */
#define KMEM_USER_PLACES 8
#define KMEM_USER_STACK	 8192 /* bytes: two pages */
#define KMEM_USER_AT(addr, n) \
	((__u32)(((addr) + (n)) * 0x9e3779b97f4a7c15ull >> 40) & (KMEM_USERS - 1))

/* The registers and the stack of the program on whose behalf a block was allocated. */
struct kmem_user {
	__u64 addr; /* of the block; 0: the place is free, KMEM_FILLED: it is being filled */
	__u64 time_ns;
	__u64 image[2]; /* of its memory: where the stack began, where the code ends */
	__u64 regs[KMEM_REGS_NR];
	__u32 len; /* bytes of the stack, */
	__u32 pad;
	__u8 stack[KMEM_USER_STACK]; /* the first of which is at the stack pointer's lower 12 bits
				      */
};

/* A stack that was walked. */
struct kmem_sample {
	__u32 kind;  /* KMEM_SAMPLE */
	__u32 point; /* enum kmem_point */
	__u32 stack; /* as of kmem_block */
	__u32 known; /* what it was known as; KMEM_NO_STACK: it was not known */
	__u32 nr;    /* words, from KMEM_BELOW below the arguments to the registers of user space */
	__u32 pad;
	__u64 words[KMEM_WORDS];
};

/* For the program that reads the kernel's memory. */
enum kmem_read_kind { KMEM_READ_BYTES, KMEM_READ_CACHE_NAME, KMEM_READ_OWN };

/* What the program read_memory is asked for, and its answer. */
struct kmem_read {
	__u64 at;   /* in: the address, or that of a struct kmem_cache; KMEM_READ_OWN: none */
	__u32 kind; /* in: enum kmem_read_kind */
	__s32 err;  /* negative: it cannot be read */
	char bytes[64];
};

#endif
