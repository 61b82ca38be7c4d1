/* ring.h - the memory that a preloaded library and the recorder share
 *
 * One build of mleak talking to itself: may change freely, never on disk.  The recorder makes it, a
 * sealed memfd of constant size; the library, in the target, writes events.  What the target writes
 * is hostile to the recorder: it copies each value once and checks it.  The reasons are in
 * doc/decisions/0025-shared-memory-without-a-socket.md.
 */
#ifndef LIBPRELOAD_RING_H
#define LIBPRELOAD_RING_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "bpf/python.h"
#include "record/libpreload/begun.h"
#include "record/libpreload/record.h"

/* Of all that stands here, from build.mk: a program that was linked with libmleak-wrap.a has
 * its library for ever. */
#ifndef PRELOAD_LAYOUT
#define PRELOAD_LAYOUT 0x6b61656c6d4c5250
#endif
/*
 * "<descriptor of the memory>,<its nonce in hex>".  Where children are recorded it stays in the
 * environment: "@<recorder's process id>,<recorder's descriptor>,<nonce>"; behind the descriptor
 * "+<the number of one that is handed on>", and at the end ",a" when the caller of exec counted the
 * program's start; behind it, in both forms, where it noted the name, and "p<the program's
 * process id>" or "s<its parent's>", all in hex.
 */
#define PRELOAD_ENV "MLEAK_PRELOAD"

/* The file of the library, in whatever folder. */
#define PRELOAD_LIBRARY "libmleak-preload.so"

#define PRELOAD_MAX_RINGS 512u
#define PRELOAD_NR_LARGE  16u /* rings, the first */
#define PRELOAD_NR_DIGITS 40

#define PRELOAD_MAX_PROCESSES 512u /* that are recorded at one time */
#define PRELOAD_SLOT_BITS     10
#define PRELOAD_MEMORY_NAME   "mleak rings"
#define PRELOAD_FACTS_NAME    "mleak facts"

/* What the events of a ring that found no room were; the order is the recorder's. */
enum preload_loss {
	PRELOAD_LOST_ALLOC,
	PRELOAD_LOST_FREE,
	PRELOAD_LOST_RELEASE,
	PRELOAD_LOST_RESTORE,
	PRELOAD_LOST_UNMAP,
	PRELOAD_LOST_FRAMES, /* an interpreter's, of an allocation */
	PRELOAD_NR_LOST,
	PRELOAD_LOST_OVERRUN = PRELOAD_NR_LOST, /* counted for all threads together */
};

#define PRELOAD_NR_SKIPS 6 /* of enum event_skip */

/*
 * A ring has one producer: a thread, or the signal handlers that interrupt it while it writes.
 * Positions count bytes and never wrap.
 */
struct preload_ring {
	/* written by the target */
	uint64_t head; /* all before it is whole */
	/* 0: any event that begins from now on is given a later time than now.  Else one is
	 * being written, and its time is not below this. */
	uint64_t busy;
	uint64_t lost[PRELOAD_NR_LOST];
	uint64_t wanted; /* the recorder adds to room, and wakes, when tail has come here */
	/* what was left out, as was requested, by enum event_skip */
	uint64_t skipped[PRELOAD_NR_SKIPS], skipped_bytes[PRELOAD_NR_SKIPS];
	uint64_t unused_target[1];
	uint64_t name[2]; /* of its thread, when that took it; bytes as prctl() has them */
	/* written by the recorder */
	uint64_t tail; /* all before it was taken in */
	/* 0: the ring is free; else a thread's id, and above it preload_process.program.  The
	 * target sets it, the recorder clears it when that thread has ended. */
	uint64_t owner;
	uint32_t room; /* what a thread sleeps on that waits for room */
	uint32_t unused_either;
	uint64_t unused[5];
};

_Static_assert(sizeof(struct preload_ring) == 256, "lines of the cache are of one side each");

/* Which allocations are recorded; of them alone are frees. */
struct preload_filter {
	uint32_t on, samples;
	uint64_t min_size, max_size;	    /* bytes, both included */
	uint64_t begin;			    /* all before this time is left out */
	uint64_t by_bytes;		    /* else each allocation weighs the same */
	uint32_t digits[PRELOAD_NR_DIGITS]; /* as struct event_filter has them */
	/* Threads are recorded or only counted: what is in account.h follows the rings. */
	uint32_t by_thread;
	uint32_t sum_processes, sum_sites; /* sums are kept of these, too */
	uint32_t unused;
};

/* Outstanding bytes from which on is recorded: a thread, all of a process, and what all calls
 * allocate that return to one address. */
struct preload_triggers {
	int64_t thread, process, site;
};

/* Whether a process may run. */
enum preload_answer {
	PRELOAD_WAIT,
	PRELOAD_GO,
	PRELOAD_GO_ALONE, /* it is not recorded */
	PRELOAD_GONE,	  /* it has seen that, and left the slot */
};

/* Whether the last blocks of a process were checked for overruns. */
enum preload_guard {
	PRELOAD_GUARD_NONE, /* they have no guard bytes */
	PRELOAD_GUARD_WATCHED,
	PRELOAD_GUARD_LOOKED, /* they were, for it ends */
};

/* A process that writes here. */
struct preload_process {
	/* written by the target */
	uint32_t pid;	       /* 0: the slot is free */
	uint32_t parent;       /* its process id */
	uint32_t program;      /* which program it runs: header.hello as that came up, moved up by
				  PRELOAD_SLOT_BITS, and the number of this slot */
	uint32_t maps_asked;   /* requests for a look at the mappings */
	uint32_t maps_changed; /* the same, but nothing waits */
	uint32_t maps_unanswered; /* requests that were waited for in vain */
	uint32_t execs;		  /* that the library knows of */
	uint32_t guard;		  /* enum preload_guard */
	uint32_t waits;		  /* for go; so it is between no two programs */
	/* written by the recorder; words the target sleeps on */
	uint32_t go;	     /* enum preload_answer; PRELOAD_GONE by the target */
	uint32_t maps_done;  /* requests that were answered */
	uint32_t code_found; /* as maps_changed, of what the recorder has seen */
	uint32_t why;	     /* enum preload_why, before PRELOAD_GO_ALONE */
	uint32_t unused_recorder[3];
};

_Static_assert(sizeof(struct preload_process) == 64, "a cache line");

/* What the recorder tells a process of itself: offsets and addresses by which the library reads.
 * Where the process may open it, it is in a memory of its own, to which only the recorder writes.
 */
struct preload_facts {
	/* its on is 1 more than the program of which it is true, and is written last */
	struct event_go golang;
	uint32_t pythons; /* changes of python; 0: the process has no interpreter */
	uint32_t changes; /* of all; before what says that it is there */
	struct event_python python;
	uint64_t unused[3];
};

_Static_assert(sizeof(struct preload_facts) == 128, "two cache lines");

/* What processes that write here have forbidden themselves.  Bits, of header.confined. */
enum preload_confined {
	PRELOAD_NO_CALLS = 1, /* by a seccomp filter: the library makes no system call */
	PRELOAD_NO_CLOCK = 2, /* nothing can be recorded any more */
	PRELOAD_LEFT_OUT = 4, /* something was not recorded because of the filter */
};

/* What times in the memory count: ticks of the processor's counter, or CLOCK_MONOTONIC in
 * nanoseconds. */
enum preload_clock_kind { PRELOAD_CLOCK_TSC, PRELOAD_CLOCK_MONOTONIC };

/* Most programs have few threads that allocate much: theirs are large, for each wait for a full one
 * empties the processor's caches of what the program had there. */
struct preload_sizes {
	uint32_t nr_rings;
	uint32_t ring_size;  /* bytes, a power of two */
	uint32_t large_size; /* of the first PRELOAD_NR_LARGE; the same, and not below ring_size */
};

/* What the memory of facts has. */
struct preload_facts_memory {
	uint64_t layout, nonce; /* as in the header */
	uint64_t unused[6];
	struct preload_facts facts[PRELOAD_MAX_PROCESSES];
};

/* What the shared memory begins with: settings, words to wait on, counters, processes and the
 * rings' states.  The rings' bytes follow, at preload_ring_offset(). */
struct preload_header {
	/* set before the target runs */
	uint64_t layout, nonce; /* PRELOAD_LAYOUT */
	struct preload_sizes sizes;
	uint32_t stack_limit;		    /* bytes */
	uint32_t clock;			    /* enum preload_clock_kind: of all times here */
	uint32_t follow;		    /* children are recorded, too */
	uint32_t recorder_pid, recorder_fd; /* where the memory is found again after an exec */
	uint32_t guard;			    /* blocks are to have guard bytes */
	uint32_t waits_at_fork;	      /* a child waits for its go at once, not at its first event */
	uint64_t block_ns;	      /* how long a full ring may hold a thread up; 0: not at all */
	struct preload_filter filter; /* its beginning: before the command's go */
	uint32_t facts_fd;	      /* the recorder's, of the memory of facts; 0: there is none */
	uint32_t unused_number;
	uint64_t unused[12];
	/* written by the recorder, hardly ever; words the target sleeps on */
	uint32_t ended; /* nothing is recorded any more */
	uint32_t alive; /* has FUTEX_OWNER_DIED set by the kernel when the recorder is gone */
	/* the same, where threads are recorded or only counted */
	struct preload_triggers triggers;
	uint32_t all_threads; /* what is not chosen is recorded */
	uint32_t unused_seldom[7];
	/* written by the recorder, often: away from what each event reads */
	uint32_t asleep; /* the recorder wants to be woken when a ring is half full */
	uint32_t unused_often[15];
	/* written by the target */
	uint32_t wake;	   /* the word the recorder sleeps on */
	uint32_t hello;	   /* programs in which the library came up: one more by each exec */
	uint32_t execs;	   /* programs that were to begin by exec */
	uint32_t forks;	   /* children that were to be */
	uint32_t children; /* that came to be */
	uint32_t no_slot;  /* processes that found no slot */
	uint64_t lost[PRELOAD_NR_LOST + 1]; /* by threads that have no ring */
	uint32_t confined;		    /* enum preload_confined */
	uint32_t accounts_made;		    /* or were to be: see account.h */
	uint64_t last_time; /* that an event has; where the clock is not the counter */
	/* what was left out of threads that found no place among the accounts, as in a ring */
	uint64_t skipped[PRELOAD_NR_SKIPS], skipped_bytes[PRELOAD_NR_SKIPS];
	uint64_t lost_sums;	/* frees by others that found no account to be added to */
	uint64_t left_children; /* children that are not to be recorded */
	uint64_t passed_by;    /* programs with a malloc of their own: theirs is called, not ours */
	uint64_t calls_unseen; /* programs that call functions of their allocator not wrapped */
	uint64_t no_facts;     /* processes that may not know of facts what others could write */
	uint64_t ringless;     /* events for which all rings were other threads' */
	uint64_t unused_counts[2];
	struct preload_begun begun[PRELOAD_MAX_BEGUN];
	struct preload_process processes[PRELOAD_MAX_PROCESSES]; /* the command has the first */
	/* written by the recorder, for those that cannot open the memory of facts */
	struct preload_facts facts[PRELOAD_MAX_PROCESSES];
	struct preload_ring rings[];
};

/* Bytes of ring @i. */
static inline uint32_t preload_ring_size(const struct preload_sizes *s, uint32_t i)
{
	return i < PRELOAD_NR_LARGE ? s->large_size : s->ring_size;
}

/* Where the bytes of ring @i begin, from the start of the memory; of ring nr_rings: its end. */
static inline uint64_t preload_ring_offset(const struct preload_sizes *s, uint32_t i)
{
	uint64_t first = sizeof(struct preload_header) + s->nr_rings * sizeof(struct preload_ring);
	uint32_t large = i < PRELOAD_NR_LARGE ? i : PRELOAD_NR_LARGE;

	return ((first + 4095) & ~4095ull) + (uint64_t)large * s->large_size +
	       (uint64_t)(i - large) * s->ring_size;
}

_Static_assert(offsetof(struct preload_header, ended) % 64 == 0 &&
		       offsetof(struct preload_header, asleep) % 64 == 0 &&
		       offsetof(struct preload_header, rings) % 64 == 0,
	       "lines of the cache are of one side each");

#endif
