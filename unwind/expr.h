/* expr.h - evaluate the DWARF expressions of call frame information */
#ifndef DWUNW_EXPR_H
#define DWUNW_EXPR_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/dwunw.h"
#include "unwind/stack.h"

#define DWUNW_EXPR_MAX_STEPS 1000
#define DWUNW_EXPR_MAX_DEPTH 64

/* What an expression may look at. */
struct dwunw_expr_env {
	const uint64_t *reg; /* DWUNW_MAX_ARCH_REGS registers of the frame */
	uint32_t known;	     /* bit r: reg[r] holds a value */
	const struct dwunw_stack *stack;
	uint64_t bias;	     /* for DW_OP_addr: address in the process minus that in the file */
	const uint64_t *cfa; /* NULL while the CFA itself is computed */
};

/*
 * Evaluate the @nops operations at @ops, as libdw hands them out.  *value is the top of the
 * expression's stack: the wanted value itself if *is_value, else the address where it stands.
 * They are set only when DWUNW_FETCH_OK is returned.  Nothing is read but env->stack.
 */
enum dwunw_fetch dwunw_expr_eval(const struct dwunw_expr_env *env, const Dwarf_Op *ops, size_t nops,
				 uint64_t *value, bool *is_value);

#endif
