/* step.c - apply the rules of call frame information to a frame */
#include "unwind/step.h"

#include <stdbool.h>

#include "unwind/expr.h"

/* What it means when the CFA or the return address cannot be had. */
static enum dwunw_status status_of(enum dwunw_fetch fetch)
{
	switch (fetch) {
	case DWUNW_FETCH_ABOVE:
	case DWUNW_FETCH_UNKNOWN: /* its slot was above the bytes, in a frame before */
		return DWUNW_STATUS_TRUNCATED;
	case DWUNW_FETCH_BAD:
		return DWUNW_STATUS_NO_CFI;
	default:
		return DWUNW_STATUS_BAD_MEMORY;
	}
}

/* Set register @reg to what was fetched.  A register "saved" below the stack was popped already:
 * the function is about to return, and the value is in the register. */
static void set_register(struct dwunw_walk *w, int reg, enum dwunw_fetch fetch, uint64_t value)
{
	if (fetch == DWUNW_FETCH_OK) {
		w->reg[reg] = value;
		w->known |= 1u << reg;
	} else if (fetch != DWUNW_FETCH_BELOW) {
		w->known &= ~(1u << reg);
	}
}

/* A signal may be handled on another stack than the one that it interrupted, and that may be below
 * all bytes at hand. */
static bool leaves_stack(const struct dwunw_walk *w, const struct dwunw_cfi_row *row, uint64_t cfa)
{
	return row->signal && cfa < w->stack->addr && w->cfa != UINT64_MAX;
}

static int step_simple(struct dwunw_walk *w, const struct dwunw_cfi_row *row)
{
	uint64_t cfa = w->reg[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_off, ra = 0;
	enum dwunw_fetch fetch;

	if (!(w->known & 1u << row->cfa_reg))
		return DWUNW_STATUS_TRUNCATED;
	if (cfa <= w->cfa)
		return DWUNW_STATUS_BAD_MEMORY;
	fetch = dwunw_stack_read(w->stack, cfa + (uint64_t)(int64_t)row->ra_off, sizeof(ra), &ra);
	if (fetch)
		return status_of(fetch);
	for (unsigned int i = 0; i < row->nr_saved; i++) {
		uint64_t value = 0;

		fetch = dwunw_stack_read(w->stack, cfa + (uint64_t)(int64_t)row->off[i],
					 sizeof(value), &value);
		set_register(w, row->reg[i], fetch, value);
	}
	w->known &= ~row->undefined;
	w->reg[DWUNW_X86_64_RIP] = ra;
	w->reg[DWUNW_X86_64_RSP] = w->cfa = cfa;
	w->known |= 1u << DWUNW_X86_64_RSP;
	return DWUNW_STEPPED;
}

/* Evaluate a rule's expression down to the value of the register. */
static enum dwunw_fetch rule_value(const struct dwunw_expr_env *env, const Dwarf_Op *ops,
				   size_t nops, uint64_t *value)
{
	bool is_value = false;
	enum dwunw_fetch fetch = dwunw_expr_eval(env, ops, nops, value, &is_value);

	if (fetch || is_value)
		return fetch;
	return dwunw_stack_read(env->stack, *value, sizeof(*value), value);
}

/* Change register @reg of @w to the caller's, by the registers in @env. */
static enum dwunw_fetch apply_rule(struct dwunw_walk *w, const struct dwunw_expr_env *env,
				   const struct dwunw_cfi_row *row, int reg)
{
	Dwarf_Op mem[3], *ops;
	size_t nops;
	uint64_t value = 0;
	enum dwunw_fetch fetch;

	switch (dwunw_cfi_full_rule(row, reg, mem, &ops, &nops)) {
	case DWUNW_CFI_RULE_SAME:
		return DWUNW_FETCH_OK;
	case DWUNW_CFI_RULE_UNDEFINED:
		/* libdw says so too of a scratch register that has no rule: it is kept, as libgcc
		 * does, for code whose own conventions rely on it. */
		w->known &= ~(DWUNW_CFI_CALLEE_SAVED & 1u << reg);
		return DWUNW_FETCH_OK;
	default:
		fetch = rule_value(env, ops, nops, &value);
		set_register(w, reg, fetch, value);
		return fetch;
	}
}

static int step_full(struct dwunw_walk *w, const struct dwunw_cfi_row *row)
{
	const struct dwunw_walk old = *w;
	struct dwunw_expr_env env = {
		.reg = old.reg, .known = old.known, .stack = old.stack, .bias = old.bias};
	enum dwunw_fetch fetch;
	bool is_value;
	uint64_t cfa = 0;
	Dwarf_Op *ops;
	size_t nops;

	if (dwarf_frame_cfa(row->frame, &ops, &nops))
		return DWUNW_STATUS_NO_CFI;
	/* The result is the CFA, never the address of it. */
	fetch = dwunw_expr_eval(&env, ops, nops, &cfa, &is_value);
	if (fetch)
		return status_of(fetch);
	if (cfa <= old.cfa && !leaves_stack(&old, row, cfa))
		return DWUNW_STATUS_BAD_MEMORY;
	env.cfa = &cfa;
	w->reg[DWUNW_X86_64_RSP] = cfa;
	/* The interrupted frame is known then, but none beyond it. */
	w->cfa = cfa <= old.cfa ? UINT64_MAX : cfa;
	w->known |= 1u << DWUNW_X86_64_RSP;
	for (int reg = 0; reg < DWUNW_X86_64_RIP; reg++)
		apply_rule(w, &env, row, reg);
	fetch = apply_rule(w, &env, row, DWUNW_X86_64_RIP);
	return fetch ? (int)status_of(fetch) : DWUNW_STEPPED;
}

int dwunw_step(struct dwunw_walk *w, const struct dwunw_cfi_row *row)
{
	/* No frame is found by bytes that are beyond the end.  Rules that need none of them would
	 * lead on without an end. */
	if (w->cfa != UINT64_MAX && w->cfa > w->stack->addr &&
	    w->cfa - w->stack->addr > w->stack->len)
		return DWUNW_STATUS_TRUNCATED;
	return row->kind == DWUNW_CFI_SIMPLE ? step_simple(w, row) : step_full(w, row);
}
