/* expr.h - evaluate the DWARF expressions of call frame information */
#ifndef DWUNW_EXPR_H
#define DWUNW_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/cfi/stack.h"
#include "unwind/dwunw.h"

#define DWUNW_EXPR_MAX_STEPS 1000
#define DWUNW_EXPR_MAX_DEPTH 64
#define DWUNW_EXPR_MAX_LEN   4096 /* bytes */

/* What an expression may look at. */
struct dwunw_expr_env {
	const uint64_t *reg; /* DWUNW_MAX_ARCH_REGS registers of the frame */
	uint32_t known;	     /* bit r: reg[r] holds a value */
	const struct dwunw_stack *stack;
	uint64_t bias;	     /* for DW_OP_addr: address in the process minus that in the file */
	const uint64_t *cfa; /* what is on the expression's stack at first, and the value of
				DW_OP_call_frame_cfa; NULL while the CFA itself is computed */
};

/*
 * Evaluate the @len bytes at @expr.  *value is the top of the expression's stack: the wanted value
 * itself if *is_value, else its address.  They are set only when DWUNW_FETCH_OK is returned.
 * Nothing is read but @expr and env->stack, and nothing is allocated.
 */
enum dwunw_fetch dwunw_expr_eval(const struct dwunw_expr_env *env, const uint8_t *expr, size_t len,
				 uint64_t *value, bool *is_value);

/* An operation of an expression. */
struct dwunw_expr_op {
	uint8_t atom;		  /* DW_OP_* */
	uint64_t number, number2; /* its operands; extended to 64 bits if they are signed */
};

/* Read the operation at @expr[*at] and go on behind it.  Returns false for one that has no place in
 * call frame information, or that is cut short. */
bool dwunw_expr_decode(const uint8_t *expr, size_t len, size_t *at, struct dwunw_expr_op *op);

#endif
