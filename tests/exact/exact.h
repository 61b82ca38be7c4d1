/* exact.h - the files that sampler.c writes and compare.c reads, both of one build
 *
 * A file belongs to one process between two exec()s.  It is a sequence of records: struct
 * exact_record, then record.len bytes, a multiple of 8.  A maps record holds for all samples after
 * it, up to the next.
 */
#ifndef TESTS_EXACT_H
#define TESTS_EXACT_H

#include <stdint.h>

#include "unwind/dwunw_event.h"

enum exact_record_type {
	EXACT_MAPS = 0x70616d, /* text: the executable lines of /proc/PID/maps */
	EXACT_VDSO,	       /* the bytes of the vdso's ELF image */
	EXACT_SAMPLE,	       /* struct exact_sample, its frames, its stack bytes */
};

struct exact_record {
	uint32_t type; /* enum exact_record_type */
	uint32_t len;  /* bytes that follow */
};

enum exact_flag {
	EXACT_CUT = 1 << 0,	    /* the stack goes on above the bytes saved */
	EXACT_FRAME_LIMIT = 1 << 1, /* libgcc would have found more frames */
};

struct exact_sample {
	uint64_t regs[DWUNW_MAX_ARCH_REGS]; /* by DWARF number; rip is in sampler.c's own frame */
	uint64_t stack_addr;		    /* address of the first stack byte, the rsp in regs */
	uint32_t stack_len;		    /* bytes */
	uint32_t nr_frames;
	uint32_t tid;
	uint32_t flags; /* enum exact_flag */
};

/* A frame as libgcc has it.  The last has pc 0 when the stack was walked to its end. */
struct exact_frame {
	uint64_t pc;
	uint64_t sp;	      /* what rsp is in this frame, while the one before runs */
	uint64_t interrupted; /* 1: pc is where a signal came, not a return address */
};

#endif
