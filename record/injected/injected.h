/* injected.h - what the recorder and the code that it puts into a running process share
 *
 * One build of mleak talking to itself: may change freely, never on disk.  All of it lies in the
 * image, which the recorder maps into the target and fills from outside.
 */
#ifndef INJECTED_INJECTED_H
#define INJECTED_INJECTED_H

#define INJECTED_MAGIC 0x646574636a6e494d /* of struct injected, once it is filled */
#define INJECTED_IMAGE 0x6567616d496b6c4d /* of struct injected_image */

#define INJECTED_NR_THREADS 4096
#define INJECTED_TRIES	    64u		/* places that one can have */
#define INJECTED_MEMORY	    (112 << 20) /* bytes */

#define INJECTED_MAX_SITES    256
#define INJECTED_SITE_SIZE    96   /* of struct injected_site */
#define INJECTED_SITE_GOES_ON 16   /* of its member moved */
#define INJECTED_SETTINGS_AT  72   /* of struct injected's settings */
#define INJECTED_STATE_AT     384  /* and state */
#define INJECTED_SITES_AT     2048 /* and sites */

#define INJECTED_ENDED_AT 384 /* in struct preload_header, ended, */
#define INJECTED_ALIVE_AT 388 /* and alive */

/* What the stubs of samples know: in struct injected_thread, */
#define INJECTED_THREAD_SIZE 32
#define INJECTED_TID_AT	     8
#define INJECTED_INSIDE_AT   16
#define INJECTED_SELF_AT     24
/* in struct injected, */
#define INJECTED_TID_OFFSET_AT 16
#define INJECTED_LOADER_AT     (INJECTED_STATE_AT + 48) /* its state's */
/* in struct preload_thread, whose first lane comes first, as the ring does in that, */
#define INJECTED_DISTANCE_AT 64
#define INJECTED_DRAWN_AT    72
#define INJECTED_RELEASED_AT 76
/* in struct preload_ring: by enum event_skip, */
#define INJECTED_SKIPPED_AT	  72
#define INJECTED_SKIPPED_BYTES_AT 120
#define INJECTED_SKIP_SAMPLE	  1
#define INJECTED_SKIP_FREE	  4
/* and as injected_first_place() and sample_hash() multiply. */
#define INJECTED_HASH 0x9e3779b97f4a7c15

/* The stubs by their numbers: what a patched function's slot leads to.  MALLOC is for all that take
 * a size alone, ALIGNED_ALLOC an alignment before it, FREE for all that give a block back, NEW and
 * NEW_ALIGNED for operators new that may throw, NEW_NOTHROW for the others.  LOADER is for what the
 * loader calls when modules have come or gone.  SAMPLED_MALLOC and SAMPLED_FREE are for the C
 * library's malloc and free, where one in so many bytes is recorded and nothing else is left out:
 * what is, most often passes by a look.  They call no function that was changed but those that map,
 * which do not count from a library that allocates. */
#define INJECTED_STUBS(X)                 \
	X(MALLOC, malloc)                 \
	X(CALLOC, calloc)                 \
	X(REALLOC, realloc)               \
	X(REALLOCARRAY, reallocarray)     \
	X(FREE, free)                     \
	X(POSIX_MEMALIGN, posix_memalign) \
	X(ALIGNED_ALLOC, aligned_alloc)   \
	X(MMAP, mmap)                     \
	X(MREMAP, mremap)                 \
	X(MUNMAP, munmap)                 \
	X(MPROTECT, mprotect)             \
	X(MADVISE, madvise)               \
	X(NEW, new)                       \
	X(NEW_ALIGNED, new_aligned)       \
	X(NEW_NOTHROW, new_nothrow)       \
	X(SAMPLED_MALLOC, sampled_malloc) \
	X(SAMPLED_FREE, sampled_free)     \
	X(LOADER, loader)

#ifndef __ASSEMBLER__

#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "record/libpreload/state.h"

#define INJECTED_MAX_LATER  24 /* islands for files that came later */
#define INJECTED_MAX_MAPPED (10 + INJECTED_MAX_LATER)

#define INJECTED_STUB(upper, lower) INJECTED_##upper,

/* The number of a stub in struct injected_image. */
enum injected_stub { INJECTED_STUBS(INJECTED_STUB) INJECTED_NR_STUBS };

/*
 * What the image begins with.  Offsets are from the image's start.  Code comes first, then data as
 * the image has it, then data that is zero; each begins a page, and so does what is behind them.
 */
struct injected_image {
	uint64_t magic, layout; /* INJECTED_IMAGE, PRELOAD_LAYOUT */
	uint32_t text_end, data_end, end;
	uint32_t injected;     /* struct injected */
	uint32_t own;	       /* a page: union injected_own */
	uint32_t threads;      /* struct injected_thread, */
	uint32_t nr_threads;   /* so many */
	uint32_t memory_bytes; /* that struct injected's memory is to have */
	uint32_t stubs[INJECTED_NR_STUBS];
};

/* A function of the target that was changed.  Its slot in an island puts the number of its site
 * into r11d and jumps to the stub; all else is as the caller left it. */
struct injected_site {
	uint64_t function; /* where it begins */
	uint64_t at;	   /* its first changed byte */
	uint64_t moved;	   /* where the original goes on: its moved instructions */
	uint64_t nothrow;  /* INJECTED_NEW(_ALIGNED): of the form that throws nothing; 0: none */
	uint32_t func;	   /* enum event_func, as events name it */
	uint32_t stub;	   /* enum injected_stub */
	uint8_t before[8], after[8]; /* the changed bytes */
	char name[40];
};

/*
 * Filled by the recorder before any function is changed; the image writes to nr_strangers, and to
 * what of the state is its own.  All addresses are the target's.  Of files that are loaded later
 * the recorder adds what is mapped, the code and the sites, in this order, before it changes their
 * functions: so who removes it finds all at any time.
 */
struct injected {
	uint64_t magic, nonce; /* INJECTED_MAGIC, and that of the rings */
	uint64_t tid_offset;   /* where in a thread's control block its id is, a uint32_t */
	/* A word of the loader's that changes when a module comes or goes; 0: it is not known, and
	 * whenever the loader allocates the recorder is asked to look. */
	uint64_t modules_at, modules; /* and what it was when the recorder last looked */
	/* memory_bytes, zero, to read and write, for the image's use: not to be huge pages, for
	 * little of each part is touched.  A child of fork keeps this and the rings, because a
	 * handler that forks may have interrupted an event. */
	uint64_t memory;
	/* Threads that are in the image, but have no struct injected_thread. */
	uint64_t nr_strangers;
	struct preload_range main_stack;  /* on which the main thread's frames are */
	struct preload_settings settings; /* without by_thread, guard and follow */
	/* pid as the target has it, program, process, confined, loader, and the image's code as
	 * own; the rest is 0.  confined may be set at any time. */
	struct preload_state state __attribute__((aligned(128)));
	struct event_code code; /* whose calls are the allocators' own, as for the probes */
	/* What was mapped for us, for who removes it. */
	uint32_t nr_mapped, nr_sites;
	struct preload_range mapped[INJECTED_MAX_MAPPED];
	/* What the recording began with; the others are for files that came later, and may have
	 * gone since.  Island nr_first_mapped + i is that of the allocator's code later[i]. */
	uint32_t nr_first_mapped, nr_first_sites;
	struct preload_range later[INJECTED_MAX_LATER];
	struct injected_site sites[INJECTED_MAX_SITES] __attribute__((aligned(2048)));
};

_Static_assert(sizeof(struct injected_site) == INJECTED_SITE_SIZE &&
		       offsetof(struct injected_site, moved) == INJECTED_SITE_GOES_ON,
	       "as the stubs know it");
_Static_assert(offsetof(struct injected, settings) == INJECTED_SETTINGS_AT &&
		       offsetof(struct injected, state) == INJECTED_STATE_AT &&
		       offsetof(struct injected, sites) == INJECTED_SITES_AT,
	       "as the image's names for them are made");
_Static_assert(offsetof(struct preload_header, ended) == INJECTED_ENDED_AT &&
		       offsetof(struct preload_header, alive) == INJECTED_ALIVE_AT,
	       "as the stubs know it");

/* What events go by: set last, and to NULL first.  The recorder has it wiped in a child of fork()
 * (MADV_WIPEONFORK), where all calls then only pass. */
union injected_own {
	struct preload_header *shared; /* the rings; NULL: nothing is recorded */
	uint8_t page[4096];
};

/* A thread that came by, for who wants to remove the image.  It may have ended since. */
struct injected_thread {
	uint64_t tcb; /* its control block; 0: none; 1: this is being made */
	uint32_t tid;
	uint32_t calling; /* the function that was changed is under way */
	/* The thread is in the image's code, called at this stack pointer, or it has left that by a
	 * jump and made no call since.  0: it is not, but perhaps in the first or last instructions
	 * of that, where a handler may have interrupted it.  What only passes leaves nothing of
	 * ours on the stack, and is not noted. */
	uint64_t inside;
	uint64_t self; /* struct preload_thread, where the target has it */
};

/* Where the search for the thread with the control block @tcb begins, among @nr places. */
static inline uint32_t injected_first_place(uint64_t tcb, uint32_t nr)
{
	return (uint32_t)((tcb >> 6) * INJECTED_HASH >> 32) % nr;
}

#endif

#endif
