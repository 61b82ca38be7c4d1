/* dwunw_capture.h - part of dwunw.h: from registers and stack bytes to frames */
#ifndef DWUNW_PART_CAPTURE_H
#define DWUNW_PART_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#include "dwunw_event.h"

struct dwunw;
struct dwunw_space;
struct dwunw_history; /* opaque: the last stack of one thread */

#ifdef __cplusplus
extern "C" {
#endif

/* The registers from which an unwinding starts. */
struct dwunw_regset {
	uint64_t reg[DWUNW_MAX_ARCH_REGS]; /* by DWARF number */
	uint32_t known;			   /* bit r: reg[r] holds a value */
	uint32_t flags;			   /* enum dwunw_event_flag, of the event */
};

/* Fill @rs from the @nr_regs registers of an event, in DWARF order, all known.  @event_flags are
 * the flags of the event.  Returns 0 or DWUNW_ERR_ARCH when @nr_regs is not that of x86-64. */
int dwunw_regset_prepare(struct dwunw_regset *rs, const uint64_t *regs, size_t nr_regs,
			 uint32_t event_flags);

/* The bytes of a stack at hand: @len bytes that were at @addr and above. */
struct dwunw_stack {
	uint64_t addr;
	const uint8_t *bytes;
	size_t len;
};

/* Bits of dwunw_frame.flags. */
enum dwunw_frame_flag {
	/* pc is a return address: what was running is the instruction before it */
	DWUNW_FRAME_FLAG_RETURN = 1 << 0,
	/* the frame of a signal trampoline; its caller was interrupted at its pc */
	DWUNW_FRAME_FLAG_SIGNAL = 1 << 1,
	/* set on the last frame found of a stack that is not complete */
	DWUNW_FRAME_FLAG_PARTIAL = 1 << 2,
	/* it was found by bytes from another moment, as all frames after it */
	DWUNW_FRAME_FLAG_STALE = 1 << 3,
	/* it was found by a guess, or through a frame that was: it may be no caller at all */
	DWUNW_FRAME_FLAG_GUESSED = 1 << 4,
	/* nothing called it: its address was put where a return address is, as makecontext() does;
	 * it was to run from pc on */
	DWUNW_FRAME_FLAG_UNCALLED = 1 << 5,
	/* the frame pointer led to it: from generated code, or from what such code called */
	DWUNW_FRAME_FLAG_POINTER = 1 << 6,
	/* it is in generated code: see DWUNW_MAPPING_GENERATED */
	DWUNW_FRAME_FLAG_GENERATED = 1 << 7,
};

/* A frame of a stack. */
struct dwunw_frame {
	uint64_t pc;   /* address in the process */
	uint64_t addr; /* the same place as the module's ELF file counts it (pc - bias); pc if none
			*/
	uint32_t module; /* or DWUNW_NO_MODULE */
	uint32_t flags;	 /* enum dwunw_frame_flag */
};

/* Why an unwinding stopped.  Only DWUNW_STATUS_ENDED is a complete stack. */
enum dwunw_status {
	DWUNW_STATUS_ENDED,	 /* return address undefined, or zero: the outermost frame */
	DWUNW_STATUS_TRUNCATED,	 /* needed bytes above those at hand */
	DWUNW_STATUS_NO_CFI,	 /* no module at a pc, or no call frame information for it; what
				  * follows that frame, if anything, is guessed */
	DWUNW_STATUS_BAD_MEMORY, /* needed an address that is not in the stack, or the CFA went back
				  */
	DWUNW_STATUS_FRAME_LIMIT, /* more frames than the caller has room for */
	DWUNW_STATUS_STALE,    /* came to the outermost frame, but by bytes from another moment */
	DWUNW_STATUS_NOT_CODE, /* the word where the return address should be is in no executable
				  mapping, and no frame: the stack went on elsewhere */
	DWUNW_STATUS_DEGRADED, /* as TRUNCATED, of a stack with DWUNW_EVENT_STACK_DEGRADED */
	DWUNW_STATUS_NR,
};

/* Static text: "complete", "stack bytes end", ... */
const char *dwunw_status_text(enum dwunw_status status);

/* The most frames a stack may have. */
#define DWUNW_MAX_FRAMES 16384

/* Bits of dwunw_sample.flags. */
enum dwunw_sample_flag {
	/* Where code has no call frame information, guess its caller: by the frame pointer; else by
	 * the first word on the stack that looks like a return address, of which the code before it
	 * must be in the module's image.  Such frames are marked, and the stack is not complete.
	 * Where frame pointers lead through generated code to code with call frame information, and
	 * that to the outermost frame, nothing is a guess. */
	DWUNW_SAMPLE_GUESS = 1 << 0,
	/* Keep all registers from the first frame on, and take nothing over.  The result is the
	 * same except for nr_taken_over, only slower: for tests and measurements. */
	DWUNW_SAMPLE_FULL = 1 << 1,
};

/* What to unwind.  All is borrowed for the call. */
struct dwunw_sample {
	const struct dwunw_regset *regs;
	const struct dwunw_stack *stack;
	/* The lowest address whose byte is not from the moment of the event, as all above it, a
	 * picture of the stack that was taken earlier; UINT64_MAX if there is none. */
	uint64_t stale_from;
	/* Of the thread and of no other, or NULL.  It is changed to hold this stack. */
	struct dwunw_history *history;
	/* The lowest address from which on all bytes up to the stack's end are as they were in the
	 * sample before this one with the same history; UINT64_MAX if not known.  Ignored if the
	 * stack's end is another one, or without a history. */
	uint64_t unchanged_from;
	uint32_t flags; /* enum dwunw_sample_flag */
};

/* What came of an unwinding. */
struct dwunw_result {
	uint32_t id; /* of the stack: equal for equal frames and status, and only then; never 0 */
	enum dwunw_status status;
	uint32_t nr_frames;
	uint32_t nr_taken_over; /* the outer ones of these, which were found in the history */
};

/*
 * Unwind @sample.  frames[0] is where the registers point, then its caller, and so on outwards.
 *
 * @frames: room for @max_frames frames, where the unwinding stops; or NULL when only the id is
 *          wanted, and then @max_frames may be 0 for no limit but DWUNW_MAX_FRAMES.
 *
 * *result is set only on success.  Once the code and the stacks are known, nothing is allocated.
 * Returns 0, -ENOMEM, or -EINVAL when @max_frames is 0 with @frames.
 */
int dwunw_capture(struct dwunw_space *space, const struct dwunw_sample *sample,
		  struct dwunw_frame *frames, size_t max_frames, struct dwunw_result *result);

/* New history, without a stack; to be kept for a thread from one of its samples to the next, in
 * whichever space.  Memory as of its deepest stack, 32 bytes a frame.  *out is NULL on failure.
 * Returns 0 or -ENOMEM. */
int dwunw_history_new(struct dwunw_history **out);

/* Release @history; NULL is allowed. */
void dwunw_history_free(struct dwunw_history *history);

#ifdef __cplusplus
}
#endif

#endif
