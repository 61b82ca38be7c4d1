/* row_check.h - whether a packed row says what the rules say that it was made of */
#ifndef TESTS_ORACLE_ROW_CHECK_H
#define TESTS_ORACLE_ROW_CHECK_H

#include <dwarf.h>

#include "unwind/cfi/cfi.h"
#include "unwind/cfi/expr.h"

/* The CFA by @rules, for the given registers. */
static inline bool cfa_by_rules(const struct dwunw_cfi_rules *rules, const uint64_t *reg,
				const struct dwunw_stack *stack, uint64_t *cfa)
{
	const struct dwunw_expr_env env = {.reg = reg, .known = 0x1ffff, .stack = stack};
	bool is_value;

	if (rules->cfa.kind == DWUNW_CFI_REGISTER) {
		*cfa = reg[rules->cfa.reg] + rules->cfa.off;
		return true;
	}
	return dwunw_expr_eval(&env, rules->cfa.expr, rules->cfa.expr_len, cfa, &is_value) ==
	       DWUNW_FETCH_OK;
}

/* The same by @row, as a hot loop would do it. */
static inline uint64_t cfa_by_row(const struct dwunw_cfi_row *row, const uint64_t *reg,
				  const struct dwunw_stack *stack)
{
	uint64_t cfa = reg[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_off;

	if (row->cfa_shape == DWUNW_CFA_DEREF)
		dwunw_stack_read(stack, cfa, 8, &cfa);
	if (row->cfa_shape == DWUNW_CFA_PLT)
		cfa += 8 * ((reg[DWUNW_CFI_RA] & 15) >= row->plt_n);
	return cfa;
}

/* A row must say what the rules say, of registers chosen to tell its shapes apart. */
static inline bool same_cfa_in_row(const struct dwunw_cfi_row *row,
				   const struct dwunw_cfi_rules *rules)
{
	static uint8_t bytes[0x2000];
	const struct dwunw_stack stack = {0x10000, bytes, sizeof(bytes)};
	uint64_t reg[DWUNW_CFI_REGS], cfa = 0;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	for (uint64_t i = 0; i < DWUNW_CFI_REGS; i++)
		reg[i] = 0x11000 + 8 * i;
	for (reg[DWUNW_CFI_RA] = 0x400; reg[DWUNW_CFI_RA] < 0x410; reg[DWUNW_CFI_RA]++)
		if (!cfa_by_rules(rules, reg, &stack, &cfa) || cfa != cfa_by_row(row, reg, &stack))
			return false;
	return true;
}

static inline bool same_register_in_row(const struct dwunw_cfi_row *row,
					const struct dwunw_cfi_rules *rules, unsigned int reg)
{
	const struct dwunw_cfi_rule *rule = &rules->reg[reg];
	struct dwunw_expr_op op = {0};
	size_t at = 0;

	for (unsigned int i = 0; i < row->nr_saved; i++) {
		uint64_t off = (uint64_t)(int64_t)row->off[i];

		if (row->reg[i] != reg)
			continue;
		if (!(row->by_reg & 1u << i))
			return rule->kind == DWUNW_CFI_OFFSET && rule->off == off;
		dwunw_expr_decode(rule->expr, rule->expr_len, &at, &op);
		return rule->kind == DWUNW_CFI_EXPR && at == rule->expr_len &&
		       op.atom == DW_OP_breg0 + row->cfa_reg && op.number == off;
	}
	if (row->undefined & 1u << reg)
		return rule->kind == DWUNW_CFI_UNDEFINED;
	return rule->kind == DWUNW_CFI_UNSPECIFIED || rule->kind == DWUNW_CFI_SAME ||
	       (reg == DWUNW_CFI_RSP && rule->kind == DWUNW_CFI_VAL_OFFSET && !rule->off);
}

#endif
