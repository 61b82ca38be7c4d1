/* step.c - apply the rules of call frame information to a frame */
#include "unwind/walk/step.h"

#include <stdbool.h>

#include "unwind/cfi/expr.h"

#define MAX_DOWN 256 /* bytes: twice what _L_lock_* leave free below rsp */

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
 * all available bytes. */
static bool leaves_stack(const struct dwunw_walk *w, const struct dwunw_cfi_row *row, uint64_t sp)
{
	return row->signal && sp < w->stack->addr && w->cfa != UINT64_MAX;
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

/* The value of a register that an expression computes. */
static enum dwunw_fetch expression_value(const struct dwunw_expr_env *env,
					 const struct dwunw_cfi_rule *rule, uint64_t *value)
{
	bool is_value = false;
	enum dwunw_fetch fetch = dwunw_expr_eval(env, rule->expr, rule->expr_len, value, &is_value);

	if (fetch || is_value || rule->kind == DWUNW_CFI_VAL_EXPR)
		return fetch;
	return dwunw_stack_read(env->stack, *value, sizeof(*value), value);
}

static enum dwunw_fetch register_value(const struct dwunw_expr_env *env, unsigned int reg,
				       uint64_t *value)
{
	if (reg >= DWUNW_MAX_ARCH_REGS)
		return DWUNW_FETCH_BAD;
	if (!(env->known & 1u << reg))
		return DWUNW_FETCH_UNKNOWN;
	*value = env->reg[reg];
	return DWUNW_FETCH_OK;
}

/* The caller's value of a register for which there is a rule. */
static enum dwunw_fetch rule_value(const struct dwunw_expr_env *env,
				   const struct dwunw_cfi_rule *rule, uint64_t *value)
{
	switch (rule->kind) {
	case DWUNW_CFI_OFFSET:
		return dwunw_stack_read(env->stack, *env->cfa + rule->off, sizeof(*value), value);
	case DWUNW_CFI_VAL_OFFSET:
		*value = *env->cfa + rule->off;
		return DWUNW_FETCH_OK;
	case DWUNW_CFI_REGISTER:
		return register_value(env, rule->reg, value);
	default:
		return expression_value(env, rule, value);
	}
}

/* Change register @reg of @w to the caller's, by the registers in @env.  One without a rule is
 * kept, a scratch register too, as libgcc does, for code whose own conventions rely on it. */
static enum dwunw_fetch apply_rule(struct dwunw_walk *w, const struct dwunw_expr_env *env,
				   const struct dwunw_cfi_rules *rules, int reg)
{
	const struct dwunw_cfi_rule *rule = &rules->reg[reg];
	uint64_t value = 0;
	enum dwunw_fetch fetch;

	if (rule->kind == DWUNW_CFI_UNSPECIFIED || rule->kind == DWUNW_CFI_SAME)
		return DWUNW_FETCH_OK;
	if (rule->kind == DWUNW_CFI_UNDEFINED) {
		w->known &= ~(1u << reg) | 1u << DWUNW_X86_64_RSP; /* that is the CFA anyway */
		return DWUNW_FETCH_OK;
	}
	fetch = rule_value(env, rule, &value);
	/* What is below the stack for its CFA being elsewhere, such as in a jump buffer, was not
	 * popped. */
	if (fetch == DWUNW_FETCH_BELOW && *env->cfa < w->stack->addr)
		fetch = DWUNW_FETCH_UNKNOWN;
	set_register(w, reg, fetch, value);
	return fetch;
}

/* Is there a rule for the caller's sp, which else is the CFA?  The CFA of code that is about to
 * jump is the buffer that says where to. */
static bool tells_sp(const struct dwunw_walk *w, const struct dwunw_cfi_rules *rules)
{
	return rules->reg[DWUNW_X86_64_RSP].kind >= DWUNW_CFI_OFFSET &&
	       w->known & 1u << DWUNW_X86_64_RSP;
}

/* Is the caller not one that called?  The return address is reckoned, or in a register: code that
 * is jumped to and jumps back, as glibc's _L_lock_* up to 2.19, whose CFA may even be below rsp. */
static bool tells_ra(const struct dwunw_cfi_rules *rules)
{
	enum dwunw_cfi_rule_kind kind = rules->reg[DWUNW_X86_64_RIP].kind;

	return kind == DWUNW_CFI_VAL_EXPR || kind == DWUNW_CFI_VAL_OFFSET ||
	       kind == DWUNW_CFI_REGISTER;
}

/* Go from @w->cfa on to the caller's @sp.  Returns false if that leads nowhere.  Each step goes up,
 * but one from where a jump was all but done leaves sp as it is, or a little lower: that counts as
 * one byte. */
static bool go_up(struct dwunw_walk *w, const struct dwunw_cfi_row *row, uint64_t sp)
{
	if (sp > w->cfa)
		w->cfa = sp;
	else if (leaves_stack(w, row, sp))
		w->cfa = UINT64_MAX; /* the interrupted frame is known then, but none beyond it */
	else if (sp == w->cfa && tells_sp(w, row->full) && sp != UINT64_MAX)
		w->cfa++;
	else if (w->cfa - sp <= MAX_DOWN && tells_ra(row->full) && w->cfa != UINT64_MAX)
		w->cfa++;
	else
		return false;
	return true;
}

static enum dwunw_fetch full_cfa(const struct dwunw_expr_env *env,
				 const struct dwunw_cfi_rule *rule, uint64_t *cfa)
{
	enum dwunw_fetch fetch;
	bool is_value;

	/* The result of an expression is the CFA, never the address of it. */
	if (rule->kind == DWUNW_CFI_VAL_EXPR)
		return dwunw_expr_eval(env, rule->expr, rule->expr_len, cfa, &is_value);
	fetch = register_value(env, rule->reg, cfa);
	*cfa += rule->off;
	return fetch;
}

static int step_full(struct dwunw_walk *w, const struct dwunw_cfi_row *row)
{
	const struct dwunw_cfi_rules *rules = row->full;
	const struct dwunw_walk old = *w;
	struct dwunw_expr_env env = {
		.reg = old.reg, .known = old.known, .stack = old.stack, .bias = old.bias};
	uint64_t cfa = 0;
	enum dwunw_fetch fetch = full_cfa(&env, &rules->cfa, &cfa);

	if (fetch)
		return status_of(fetch);
	env.cfa = &cfa;
	w->reg[DWUNW_X86_64_RSP] = cfa;
	w->known |= 1u << DWUNW_X86_64_RSP;
	for (int reg = 0; reg < DWUNW_X86_64_RIP; reg++)
		apply_rule(w, &env, rules, reg);
	if (!go_up(w, row, tells_sp(w, rules) ? w->reg[DWUNW_X86_64_RSP] : cfa))
		return DWUNW_STATUS_BAD_MEMORY;
	fetch = apply_rule(w, &env, rules, DWUNW_X86_64_RIP);
	return fetch ? (int)status_of(fetch) : DWUNW_STEPPED;
}

int dwunw_step(struct dwunw_walk *w, const struct dwunw_cfi_row *row)
{
	/* No frame is found by bytes that are beyond the end.  Rules that need none of them would
	 * lead on without an end. */
	if (w->cfa != UINT64_MAX && w->cfa > w->stack->addr &&
	    w->cfa - w->stack->addr > w->stack->len)
		return DWUNW_STATUS_TRUNCATED;
	return row->kind == DWUNW_CFI_FULL ? step_full(w, row) : step_simple(w, row);
}
