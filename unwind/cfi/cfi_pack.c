/* cfi_pack.c - see cfi_pack.h */
#include "unwind/cfi/cfi_pack.h"

#include <string.h>

static bool fits(int32_t *to, uint64_t number)
{
	*to = (int32_t)(uint32_t)number;
	return (uint64_t)(int64_t)*to == number;
}

/* Read "register and offset" (DW_OP_breg0 to 16) from @in. */
static bool take_breg(struct dwunw_bytes *in, uint8_t *reg, int32_t *off)
{
	uint64_t op = dwunw_bytes_u(in, 1), number = dwunw_bytes_sleb(in);

	*reg = (uint8_t)(op - DW_OP_breg0);
	return !in->bad && op >= DW_OP_breg0 && op < DW_OP_breg0 + DWUNW_CFI_REGS &&
	       fits(off, number);
}

/* What linkers write for a PLT, after DW_OP_breg7: an entry pushes a number before its last jump,
 * and where that is depends on the kind of PLT. */
static bool take_plt(struct dwunw_bytes *in, uint8_t *n)
{
	static const uint8_t before[] = {DW_OP_breg0 + DWUNW_CFI_RA, 0, DW_OP_lit15, DW_OP_and};
	static const uint8_t after[] = {DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};
	size_t len = sizeof(before) + 1 + sizeof(after);
	const uint8_t *at = dwunw_bytes_left(in) == len ? in->at : NULL;

	if (!at || memcmp(at, before, sizeof(before)) ||
	    memcmp(at + sizeof(before) + 1, after, sizeof(after)))
		return false;
	*n = (uint8_t)(at[sizeof(before)] - DW_OP_lit0);
	return *n < 16;
}

static enum dwunw_cfa_shape cfa_shape(struct dwunw_cfi_row *row, const struct dwunw_cfi_rule *cfa)
{
	struct dwunw_bytes in;

	if (cfa->kind == DWUNW_CFI_REGISTER) {
		row->cfa_reg = cfa->reg;
		return cfa->reg < DWUNW_CFI_REGS && fits(&row->cfa_off, cfa->off)
			       ? DWUNW_CFA_REG_OFFSET
			       : DWUNW_CFA_OTHER;
	}
	in = (struct dwunw_bytes){cfa->expr, cfa->expr + cfa->expr_len, false};
	if (!take_breg(&in, &row->cfa_reg, &row->cfa_off))
		return DWUNW_CFA_OTHER;
	if (dwunw_bytes_left(&in) == 1 && *in.at == DW_OP_deref)
		return DWUNW_CFA_DEREF;
	return row->cfa_reg == DWUNW_CFI_RSP && take_plt(&in, &row->plt_n) ? DWUNW_CFA_PLT
									   : DWUNW_CFA_OTHER;
}

/* Whether @rule says "at an offset from the CFA", or, and then *by_reg is set, "from the value of
 * the register that the CFA comes from". */
static bool is_saved(const struct dwunw_cfi_row *row, const struct dwunw_cfi_rule *rule,
		     int32_t *off, bool *by_reg)
{
	struct dwunw_bytes in;
	uint8_t reg;

	*by_reg = rule->kind == DWUNW_CFI_EXPR;
	if (rule->kind == DWUNW_CFI_OFFSET)
		return fits(off, rule->off);
	if (rule->kind != DWUNW_CFI_EXPR || row->cfa_shape != DWUNW_CFA_DEREF)
		return false;
	in = (struct dwunw_bytes){rule->expr, rule->expr + rule->expr_len, false};
	return take_breg(&in, &reg, off) && !dwunw_bytes_left(&in) && reg == row->cfa_reg;
}

/* Take the rule of @reg into the row.  False when it does not fit there. */
static bool pack_register(struct dwunw_cfi_row *row, unsigned int reg,
			  const struct dwunw_cfi_rule *rule)
{
	bool by_reg;
	int32_t off;

	if (rule->kind == DWUNW_CFI_UNSPECIFIED || rule->kind == DWUNW_CFI_SAME)
		return true;
	if (reg == DWUNW_CFI_RSP) /* the caller's rsp is the CFA, if nothing better is said */
		return rule->kind == DWUNW_CFI_UNDEFINED ||
		       (rule->kind == DWUNW_CFI_VAL_OFFSET && !rule->off);
	if (rule->kind == DWUNW_CFI_UNDEFINED) {
		row->undefined |= 1u << reg;
		return true;
	}
	if (!(DWUNW_CFI_CALLEE_SAVED & 1u << reg) || !is_saved(row, rule, &off, &by_reg))
		return false;
	row->by_reg |= (uint8_t)(by_reg << row->nr_saved);
	row->reg[row->nr_saved] = (uint8_t)reg;
	row->off[row->nr_saved++] = off;
	return true;
}

/* Take all but the CFA into the row. */
static bool pack_registers(struct dwunw_cfi_row *row, const struct dwunw_cfi_rules *rules)
{
	const struct dwunw_cfi_rule *ra = &rules->reg[DWUNW_CFI_RA];

	if (ra->kind != DWUNW_CFI_OFFSET || !fits(&row->ra_off, ra->off))
		return false;
	for (unsigned int reg = 0; reg < DWUNW_CFI_RA; reg++)
		if (!pack_register(row, reg, &rules->reg[reg]))
			return false;
	return true;
}

static enum dwunw_cfi_kind kind_of(const struct dwunw_cfi_rules *rules)
{
	switch (rules->reg[DWUNW_CFI_RA].kind) {
	case DWUNW_CFI_UNDEFINED:
		return DWUNW_CFI_OUTERMOST;
	case DWUNW_CFI_UNSPECIFIED:
	case DWUNW_CFI_SAME: /* a function that left it in rip would never return */
		return DWUNW_CFI_NONE;
	}
	return rules->cfa.kind == DWUNW_CFI_UNSPECIFIED ? DWUNW_CFI_NONE : DWUNW_CFI_FULL;
}

void dwunw_cfi_pack(struct dwunw_cfi_row *row, const struct dwunw_cfi_rules *rules)
{
	struct dwunw_cfi_row packed = {.kind = (uint8_t)kind_of(rules), .signal = rules->signal};

	*row = packed;
	if (packed.kind != DWUNW_CFI_FULL)
		return;
	packed.cfa_shape = (uint8_t)cfa_shape(&packed, &rules->cfa);
	row->cfa_shape = packed.cfa_shape;
	row->cfa_reg = packed.cfa_reg;
	row->cfa_off = packed.cfa_off;
	row->plt_n = packed.plt_n;
	if (packed.cfa_shape == DWUNW_CFA_OTHER || !pack_registers(&packed, rules))
		return;
	packed.whole = packed.cfa_shape != DWUNW_CFA_REG_OFFSET;
	if (!packed.whole)
		packed.kind = DWUNW_CFI_SIMPLE;
	*row = packed;
}
