/* step.h - from the registers of a frame to those of its caller */
#ifndef DWUNW_STEP_H
#define DWUNW_STEP_H

#include <stdint.h>

#include "unwind/cfi/cfi.h"
#include "unwind/cfi/stack.h"
#include "unwind/dwunw.h"

/* What a step returns, besides enum dwunw_status: the caller's frame was found. */
#define DWUNW_STEPPED DWUNW_STATUS_NR

/* The current frame: its registers, by DWARF number, and what they may be read from. */
struct dwunw_walk {
	const struct dwunw_stack *stack;
	uint64_t reg[DWUNW_MAX_ARCH_REGS];
	uint32_t known; /* bit r: reg[r] holds a value */
	uint64_t cfa;	/* of the frame inside of this one, or its sp: what must go up */
	uint64_t bias;	/* of the module with the frame's pc in it */
};

/* Go on to the caller's frame by @row, which is of kind SIMPLE, FULL or SWITCH.  Returns
 * DWUNW_STEPPED; or enum dwunw_status if there is no way, and then @w is of no more use. */
int dwunw_step(struct dwunw_walk *w, const struct dwunw_cfi_row *row);

#endif
