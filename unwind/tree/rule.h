/* rule.h - the way from a frame to its caller in 8 bytes, for the hot loop
 *
 * The loop knows rsp, rbp and pc alone.  A rule that needs more, or does anything odd, is SLOW.
 */
#ifndef DWUNW_RULE_H
#define DWUNW_RULE_H

#include <stdint.h>

#include "unwind/cfi/cfi.h"

/* In all kinds up to DWUNW_RULE_POPPED the return address is at CFA - 8, and bit 0 says that the
 * caller's rbp is saved, at CFA + 8 * bp_slot. */
enum dwunw_rule_kind {
	DWUNW_RULE_SP = 0,    /* CFA = rsp + cfa_off, at least rsp + 8 */
	DWUNW_RULE_SP_BP = 1, /* and rbp is saved */
	DWUNW_RULE_BP = 2,    /* CFA = rbp + cfa_off */
	DWUNW_RULE_BP_BP = 3,
	/* CFA = the word at rbp + cfa_off, and with bit 0 rbp is saved at rbp + 8 * bp_slot */
	DWUNW_RULE_DEREF = 4,
	DWUNW_RULE_DEREF_BP = 5,
	DWUNW_RULE_PLT = 6, /* CFA = rsp + 8, and 8 more if pc % 16 is at least cfa_off */
	/* CFA = rsp + cfa_off % 65536, and rbp was saved at CFA + 8 * (cfa_off / 65536), which is
	 * below rsp: it was popped, so that it has its value if the bytes down there are not
	 * available. */
	DWUNW_RULE_POPPED = 8,
	DWUNW_RULE_SLOW, /* take dwunw_step() */
	DWUNW_RULE_END,	 /* there is no caller */
	DWUNW_RULE_NONE, /* there is no call frame information */
	DWUNW_RULE_ZERO, /* of no place at all, where a return address of 0 leads */
};

/* The rule at one pc. */
struct dwunw_rule {
	int32_t cfa_off; /* bytes */
	int16_t bp_slot; /* words, at most -2; -1: rbp has none.  What is read is from there on */
	uint8_t kind;	 /* enum dwunw_rule_kind */
	uint8_t as; /* what the pc is looked up as to get here: DWUNW_PC_AS >> DWUNW_PC_SHIFT */
};

_Static_assert(sizeof(struct dwunw_rule) == 8, "packed");

/* The rule of @row; SLOW if it does not fit. */
struct dwunw_rule dwunw_rule_pack(const struct dwunw_cfi_row *row);

#endif
