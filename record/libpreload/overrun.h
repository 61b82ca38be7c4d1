/* overrun.h - how the library tells the recorder of a block written beyond its bounds
 *
 * By two records in the ring: what was found, and then an allocation's, of FUNC_OVERRUN and with
 * the same address and size, for the registers and the stack.  One build of mleak talking to
 * itself: may change freely, never on disk.
 */
#ifndef LIBPRELOAD_OVERRUN_H
#define LIBPRELOAD_OVERRUN_H

#include "bpf/event.h"
#include "record/libpreload/ring.h"

/* Beyond enum event_type and enum event_func: the BPF programs know neither. */
enum { EVENT_OVERRUN = 0x40 };
enum { FUNC_OVERRUN = 0x40 };

/* When it was found; the same numbers as enum mlk_found in format/trace.h. */
enum overrun_found {
	OVERRUN_AT_FREE = 1,
	OVERRUN_AT_REALLOC = 2,
	OVERRUN_AT_EXIT = 3,
	OVERRUN_AT_EXEC = 4,
};

#define OVERRUN_BYTES 48u /* that are watched on either side of a block, at most */

/* What was written beside a block: from the first byte that is not as it should be to the last. */
struct overrun {
	int64_t offset; /* of the first byte overwritten, from the block's beginning */
	uint32_t len;	/* bytes up to the last one, at most OVERRUN_BYTES */
	uint32_t changed;
	uint32_t found; /* enum overrun_found */
	uint32_t unused;
	uint8_t bytes[OVERRUN_BYTES]; /* len of them, as they were found */
};

/* EVENT_OVERRUN in a ring; size: UINT64_MAX is one that is not known. */
struct preload_overrun {
	struct preload_record record;
	struct overrun overrun;
};

/* The same as it is handed on. */
struct event_overrun {
	struct event_small block; /* type EVENT_OVERRUN; value: its size */
	struct overrun overrun;
};

_Static_assert(sizeof(struct preload_overrun) == 96, "no padding");

#endif
