/* unwound.h - stacks that were unwound, as a trace has them */
#ifndef MLK_UNWOUND_STACKS_H
#define MLK_UNWOUND_STACKS_H

#include "format/trace.h"

#define MLK_MAX_FRAMES 16384 /* of a stack that was unwound */

/* A module where it was mapped. */
struct mlk_unwound_module {
	struct mlk_id id;
	const char *path;
	uint64_t bias; /* an address in the process, less that in the module's ELF file */
};

/* A frame and its callers; they have numbers from 1 on. */
struct mlk_unwound_stack {
	uint32_t caller; /* number of its callers' stack, which is less than its own; 0: there is
			    no frame */
	uint32_t module; /* in which pc lies: its number from 1 on; 0: in none */
	uint32_t flags;	 /* enum dwunw_frame_flag; without a frame enum dwunw_status */
	uint64_t pc;
};

/* The stacks of an EVENTS chunk, unwound. */
struct mlk_unwound {
	uint32_t events_crc; /* of that chunk's stored payload */
	uint64_t first_ns;   /* the first time in its header */
	size_t nr_modules, nr_stacks, nr_allocs;
	const struct mlk_unwound_module *modules;
	const struct mlk_unwound_stack *stacks;
	const uint32_t *allocs; /* number of the stack of each ALLOC, in their order */
};

#endif
