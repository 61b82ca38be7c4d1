/* reach.h - snapshots of the pointers in a process's memory, doc/trace-format.md 4.17 and 4.18
 *
 * A pass is one walk through all writable memory of a process.  Its words that point into writable
 * memory are in POINTERS chunks, in the order of their addresses; the PASS chunk behind them tells
 * what was walked through.  Several passes that follow each other are one snapshot.
 */
#ifndef MLK_REACH_H
#define MLK_REACH_H

#include <stddef.h>
#include <stdint.h>

#define MLK_MAX_POINTERS (1u << 17) /* of a chunk: 20 bytes each, and a megabyte is left */
#define MLK_MAX_RANGES	 1048576u
#define MLK_REACH_REGS	 17 /* by DWARF number, psABI figure 3.36; 16 is the program counter */

/* A word of memory: its address, a multiple of 8, and what it holds. */
struct mlk_pointer {
	uint64_t address, value;
};

/* Words of a pass; ascending, and behind those of the chunks before. */
struct mlk_pointers {
	uint32_t tgid, pass;
	size_t nr;
	const struct mlk_pointer *words; /* borrowed: by the writer for the call, by the reader
					    until the next */
};

/* Writable memory that a pass walked through, or was to. */
struct mlk_range {
	uint64_t start, end; /* [start, end), ascending and not overlapping */
	uint32_t perms;	     /* enum mlk_perm */
	uint64_t offset;     /* bytes into the file */
	const char *path;    /* as the kernel prints it; "" for anonymous memory */
	uint64_t absent;     /* bytes for which there is no page: nothing was ever written there */
	uint64_t unread;     /* bytes that could not be read */
};

/* Where a thread's registers were taken. */
enum mlk_reach_how {
	MLK_REACH_UNKNOWN = 0, /* not at all */
	MLK_REACH_WAITING = 1, /* it did not run, and has not moved as far as was seen */
	MLK_REACH_STOPPED = 2, /* it was stopped */
	MLK_REACH_SAMPLED = 3, /* it ran: the registers are those of a moment of the pass */
};

/* A thread during a pass; one that ran may be there several times. */
struct mlk_reach_thread {
	uint32_t tid;
	uint8_t how;	/* enum mlk_reach_how */
	uint32_t known; /* bit r: regs[r] is known */
	uint64_t regs[MLK_REACH_REGS];
};

/* A word that the kernel keeps for the process. */
enum mlk_root_kind {
	MLK_ROOT_EPOLL = 1,    /* data of an epoll_event; number: the epoll's descriptor */
	MLK_ROOT_TIMER = 2,    /* sigval of a timer; number: the timer's */
	MLK_ROOT_ALTSTACK = 3, /* a thread's alternate stack for signals; number: the thread */
};

/* What the kernel gives back to the process. */
struct mlk_root {
	uint8_t kind; /* enum mlk_root_kind */
	uint32_t number;
	uint64_t value;
};

/* Bits of mlk_pass.flags. */
enum mlk_pass_flag {
	MLK_PASS_STOPPED = 1, /* all threads stood still */
	MLK_PASS_CUT = 2,     /* it ended early: the process did, or memory could not be read */
	MLK_PASS_LAST = 4,    /* of its snapshot, which has all that was planned */
};

/* A pass, written behind its words. */
struct mlk_pass {
	uint32_t tgid;
	uint32_t pass;		   /* of this process in this trace, from 1 on */
	uint32_t snapshot;	   /* the same for passes that belong together, from 1 on */
	uint32_t flags;		   /* enum mlk_pass_flag */
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t words;		   /* in its POINTERS chunks */
	size_t nr_ranges, nr_threads, nr_roots;
	const struct mlk_range *ranges; /* borrowed as the words */
	const struct mlk_reach_thread *threads;
	const struct mlk_root *roots;
};

#endif
