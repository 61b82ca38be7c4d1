/* event.h - what the BPF programs and the recorder agree on
 *
 * One build of mleak talking to itself through a ring buffer: may change freely, never on disk.
 */
#ifndef MLEAK_BPF_EVENT_H
#define MLEAK_BPF_EVENT_H

#include "unwind/dwunw_event.h"

/* The same numbers as enum mlk_kind in format/trace.h. */
enum event_type {
	EVENT_ALLOC = 1,
	EVENT_FREE = 2,
	EVENT_RELEASE = 3,
	EVENT_RESTORE = 4,
	EVENT_EXEC = 5,
};

/* The probed function, as attach cookie; the same numbers as enum mlk_func in format/trace.h. */
enum event_func {
	FUNC_MALLOC = 1,
	FUNC_CALLOC = 2,
	FUNC_REALLOC = 3,
	FUNC_POSIX_MEMALIGN = 4,
	FUNC_ALIGNED_ALLOC = 5,
	FUNC_MEMALIGN = 6,
	FUNC_VALLOC = 7,
	FUNC_PVALLOC = 8,
};

/* Every event but EVENT_ALLOC. */
struct event_small {
	__u32 type;   /* enum event_type */
	__u32 nested; /* EVENT_FREE: made inside an allocator's call; EVENT_EXEC: not by the main
			 thread */
	__u32 tgid, tid;
	__u64 time_ns;
	__u64 addr; /* the block; 0 for EVENT_EXEC */
};

struct event_alloc {
	__u32 type; /* EVENT_ALLOC */
	__u32 func; /* enum event_func */
	__u64 addr; /* the block */
	__u64 size; /* bytes asked for */
	struct dwunw_async_event capture;
};

/* Events that never reached the ring, and why. */
struct event_drops {
	__u64 alloc, free, release, restore, exec; /* the ring was full */
	__u64 ret;     /* calls replaced by the thread's next one: their return was never seen */
	__u64 state;   /* no memory for a thread's state */
	__u64 pointer; /* posix_memalign's result could not be read */
};

_Static_assert(sizeof(struct event_small) == 32, "no padding: it would leak kernel memory");
_Static_assert(sizeof(struct event_alloc) == 24 + sizeof(struct dwunw_async_event), "no padding");

#endif
