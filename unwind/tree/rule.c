/* rule.c - see rule.h */
#include "unwind/tree/rule.h"

#include <stdbool.h>

#include "unwind/dwunw.h"

/* Find the slot of rbp.  False when it has no slot that can be told in words below the return
 * address; *slot is -1 when it is not saved. */
static bool find_bp_slot(const struct dwunw_cfi_row *row, int16_t *slot)
{
	*slot = -1;
	if (row->undefined & 1u << DWUNW_X86_64_RBP)
		return false;
	for (unsigned int i = 0; i < row->nr_saved; i++) {
		/* One above the return address could be of bytes that are stale, or not at hand,
		 * while the return address is not. */
		if (row->off[i] > -16)
			return false;
		if (row->reg[i] != DWUNW_X86_64_RBP)
			continue;
		if (row->off[i] % 8 || row->off[i] / 8 < INT16_MIN)
			return false;
		*slot = (int16_t)(row->off[i] / 8);
	}
	return true;
}

static uint8_t kind_of_simple(const struct dwunw_cfi_row *row, int bp_slot)
{
	if (row->cfa_reg == DWUNW_X86_64_RBP)
		return bp_slot < -1 ? DWUNW_RULE_BP_BP : DWUNW_RULE_BP;
	if (row->cfa_reg != DWUNW_X86_64_RSP || row->cfa_off < 8)
		return DWUNW_RULE_SLOW;
	if (bp_slot == -1)
		return DWUNW_RULE_SP;
	return row->cfa_off + 8 * (int64_t)bp_slot < 0 ? DWUNW_RULE_POPPED : DWUNW_RULE_SP_BP;
}

/* Take a row whose CFA is read from memory through rbp.  Where what is saved there also counts from
 * rbp; the odd step checks it. */
static struct dwunw_rule pack_deref(const struct dwunw_cfi_row *row)
{
	struct dwunw_rule rule = {.kind = DWUNW_RULE_SLOW, .bp_slot = -1};

	if (row->cfa_reg != DWUNW_X86_64_RBP || row->undefined & 1u << DWUNW_X86_64_RBP)
		return rule;
	for (unsigned int i = 0; i < row->nr_saved; i++) {
		if (row->reg[i] != DWUNW_X86_64_RBP)
			continue;
		if (!(row->by_reg >> i & 1) || row->off[i] % 8 || row->off[i] / 8 < INT16_MIN ||
		    row->off[i] / 8 > INT16_MAX)
			return rule;
		rule.bp_slot = (int16_t)(row->off[i] / 8);
		rule.kind = DWUNW_RULE_DEREF_BP;
	}
	if (rule.kind == DWUNW_RULE_SLOW)
		rule.kind = DWUNW_RULE_DEREF;
	rule.cfa_off = row->cfa_off;
	return rule;
}

static struct dwunw_rule pack_plt(const struct dwunw_cfi_row *row)
{
	struct dwunw_rule rule = {.kind = DWUNW_RULE_SLOW, .bp_slot = -1};

	if (row->cfa_reg != DWUNW_X86_64_RSP || row->cfa_off != 8 || row->nr_saved ||
	    row->undefined & 1u << DWUNW_X86_64_RBP)
		return rule;
	rule.kind = DWUNW_RULE_PLT;
	rule.cfa_off = row->plt_n;
	return rule;
}

struct dwunw_rule dwunw_rule_pack(const struct dwunw_cfi_row *row)
{
	struct dwunw_rule rule = {.kind = DWUNW_RULE_SLOW};

	if (row->signal) /* its caller's pc is no return address */
		return rule;
	if (row->kind == DWUNW_CFI_NONE)
		rule.kind = DWUNW_RULE_NONE;
	if (row->kind == DWUNW_CFI_OUTERMOST)
		rule.kind = DWUNW_RULE_END;
	if (row->kind == DWUNW_CFI_FULL && row->whole && row->ra_off == -8) {
		if (row->cfa_shape == DWUNW_CFA_DEREF)
			return pack_deref(row);
		if (row->cfa_shape == DWUNW_CFA_PLT)
			return pack_plt(row);
	}
	if (row->kind != DWUNW_CFI_SIMPLE || row->ra_off != -8 || !find_bp_slot(row, &rule.bp_slot))
		return rule;
	rule.cfa_off = row->cfa_off;
	rule.kind = kind_of_simple(row, rule.bp_slot);
	if (rule.kind == DWUNW_RULE_POPPED) {
		rule.kind = row->cfa_off > UINT16_MAX ? DWUNW_RULE_SLOW : DWUNW_RULE_POPPED;
		rule.cfa_off = (int32_t)((uint32_t)rule.bp_slot << 16 | (uint32_t)row->cfa_off);
		rule.bp_slot = -1;
	}
	return rule;
}
