/* cfi_rules.h - the rules for all registers at one address, made by the instructions of a CIE and
 * an FDE (DWARF 5, section 6.4) */
#ifndef DWUNW_CFI_RULES_H
#define DWUNW_CFI_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/cfi/cfi_entry.h"

#define DWUNW_CFI_REGS 17 /* rax to r15 and the return address; others are passed over */
#define DWUNW_CFI_RSP  7
#define DWUNW_CFI_RA   16

/* Units of work that one lookup may take: an instruction is one. */
#define DWUNW_CFI_MAX_WORK 65536
/* States that may be remembered at once, not counting those that equal the one before. */
#define DWUNW_CFI_MAX_REMEMBERED 32

/* How the caller's value of a register is found. */
enum dwunw_cfi_rule_kind {
	DWUNW_CFI_UNSPECIFIED, /* nothing is said: by the ABI, the value is kept */
	DWUNW_CFI_UNDEFINED,
	DWUNW_CFI_SAME,
	DWUNW_CFI_OFFSET,     /* it is at CFA + off */
	DWUNW_CFI_VAL_OFFSET, /* it is CFA + off */
	DWUNW_CFI_REGISTER,   /* it is in register reg; of the CFA: it is reg + off */
	DWUNW_CFI_EXPR,	      /* it is where the expression says */
	DWUNW_CFI_VAL_EXPR,   /* it is what the expression says; also of the CFA */
};

/* The rule of one register, or of the CFA. */
struct dwunw_cfi_rule {
	uint8_t kind; /* enum dwunw_cfi_rule_kind */
	uint8_t reg;  /* of REGISTER: its DWARF number, or 255 for all beyond */
	uint32_t expr_len;
	union {
		uint64_t off;
		const uint8_t *expr; /* points into the section */
	};
};

/* All rules at an address. */
struct dwunw_cfi_rules {
	struct dwunw_cfi_rule cfa; /* REGISTER or VAL_EXPR */
	struct dwunw_cfi_rule reg[DWUNW_CFI_REGS];
	uint64_t start, end; /* addresses that they are for */
	uint64_t cfa_off;    /* the last offset for the CFA, also while that is an expression */
	bool signal;
};

struct dwunw_cfi_points; /* checkpoints of long FDEs */

/* Make the rules that the FDEs of @fde's CIE begin with.  Returns false as below. */
bool dwunw_cfi_rules_begin(struct dwunw_cfi_rules *initial, const struct dwunw_fde *fde);

/*
 * Make the rules at @addr, which @fde covers, out of its @initial ones.  Allocates nothing, and
 * reads only the entry.
 *
 * @points: checkpoints of the file, to go on from and to add to if the FDE is long; or NULL.
 *
 * Returns false when the instructions make no sense or are too many.
 */
bool dwunw_cfi_rules_make(struct dwunw_cfi_rules *rules, const struct dwunw_fde *fde,
			  const struct dwunw_cfi_rules *initial, uint64_t addr,
			  struct dwunw_cfi_points *points);

#endif
