/* record.h - what a ring contains: events, and what they say about a stack
 *
 * Times, stack pointers, registers and stacks are told by what changed since the ring's event
 * before.
 */
#ifndef LIBPRELOAD_RECORD_H
#define LIBPRELOAD_RECORD_H

#include <stddef.h>
#include <stdint.h>

#define PRELOAD_SLICE	   128u
#define PRELOAD_WINDOW	   131072u /* bytes of a stack that both sides remember; a power of two */
#define PRELOAD_MAX_STACK  65536u  /* bytes of a stack in one event */
#define PRELOAD_MAX_SLICES (PRELOAD_MAX_STACK / PRELOAD_SLICE + 1)
#define PRELOAD_NR_SAVED   6 /* registers that a callee keeps */

/* What a record is, beyond the kinds of enum event_type. */
enum { PRELOAD_PAD = 0x80, PRELOAD_BASE };

/* The start of a record.  PRELOAD_PAD has only the first 8 bytes of it. */
struct preload_record {
	uint16_t len8;	/* eighths of the record's bytes */
	uint8_t type;	/* enum event_type, or as above */
	uint8_t func;	/* enum event_func; EVENT_ALLOC */
	uint32_t after; /* units of the clock since the ring's record before */
	uint64_t addr;
	/* EVENT_FREE, RELEASE, RESTORE and EXEC end here */
	uint64_t size;
	/* EVENT_UNMAP and those of pages end here */
};

#define PRELOAD_SMALL 16u /* bytes of a struct preload_record without size */

/* PRELOAD_BASE: what the next records' times and stack pointers are counted from.  Before the first
 * record of a thread, and where a difference is too large. */
struct preload_base {
	uint16_t len8;
	uint8_t type, unused[5];
	uint64_t time, sp;
};

/*
 * EVENT_ALLOC.  Behind it are nr_slices masks of slices that changed, as many indices (uint16_t),
 * ascending, padded to 8 bytes; then the registers that changed, and then the half words that
 * changed, of each slice in turn; padded to 8 bytes.  Slice 0 is the aligned one that holds sp.
 */
struct preload_alloc {
	struct preload_record record;
	uint64_t pc;
	int32_t sp_after;   /* bytes from the sp before */
	uint32_t stack_len; /* bytes from sp on that are valid, once the slices are put in place */
	uint16_t nr_slices;
	uint8_t regs;	  /* bit i: the i-th of rbx rbp r12 r13 r14 r15 is given */
	uint8_t flags;	  /* enum dwunw_event_flag */
	uint32_t masks[]; /* bit i: the i-th 4 bytes of the slice are given */
};

/*
 * EVENT_PART, as struct event_part has it: the record's addr is the goroutine, its size the end of
 * that one's stack.  The record of an allocation behind it has DWUNW_EVENT_STACK_JOINED.
 */
struct preload_part {
	struct preload_record record;
	uint64_t left, sp;
	uint64_t unused[2];
	uint8_t bytes[]; /* up to the record's end */
};

#define PRELOAD_ALLOC offsetof(struct preload_alloc, masks)

_Static_assert(PRELOAD_ALLOC == 44, "no padding");

/* Bytes of a struct preload_alloc with its masks and indices. */
static inline uint32_t preload_alloc_head(uint32_t nr_slices)
{
	return ((uint32_t)PRELOAD_ALLOC + 6 * nr_slices + 7) & ~7u;
}

/*
 * The part of a stack whose bytes both sides know, [lo, hi), multiples of a slice.  Its slices are
 * in a buffer of PRELOAD_WINDOW bytes at their address modulo that.
 */
struct preload_image {
	uint64_t lo, hi;
};

/* Bytes up to which the slices of [@a, @b), at most PRELOAD_MAX_STACK + a slice, are all known
 * now.  Both sides do this after each event. */
static inline void preload_image_note(struct preload_image *im, uint64_t a, uint64_t b)
{
	if (a > im->hi || b < im->lo || im->lo == im->hi) {
		im->lo = a;
		im->hi = b;
		return;
	}
	im->lo = a < im->lo ? a : im->lo;
	im->hi = b > im->hi ? b : im->hi;
	if (im->hi - im->lo <= PRELOAD_WINDOW)
		return;
	/* What lies below is the rest of calls that have returned: the first to be forgotten. */
	im->lo = im->hi - PRELOAD_WINDOW < a ? im->hi - PRELOAD_WINDOW : a;
	if (im->hi - im->lo > PRELOAD_WINDOW)
		im->hi = im->lo + PRELOAD_WINDOW;
}

#endif
