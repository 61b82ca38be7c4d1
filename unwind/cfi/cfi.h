/* cfi.h - call frame information: how to get from a place in the code to its caller */
#ifndef DWUNW_CFI_H
#define DWUNW_CFI_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "unwind/cfi/cfi_rules.h"

/* What is known of a place. */
enum dwunw_cfi_kind {
	DWUNW_CFI_NONE,	     /* there is no information */
	DWUNW_CFI_OUTERMOST, /* the return address is undefined: there is no caller */
	DWUNW_CFI_SIMPLE,    /* all that matters is in the row, and the CFA is REG_OFFSET */
	DWUNW_CFI_FULL,	     /* go by row->full; see also row->whole */
	/* the function has changed to another stack.  If row->whole, the row is as a SIMPLE one of
	 * a stack with DWUNW_EVENT_STACK_JOINED; of all others the caller is not known */
	DWUNW_CFI_SWITCH,
};

/* How the CFA of a row comes about. */
enum dwunw_cfa_shape {
	DWUNW_CFA_REG_OFFSET, /* cfa_reg + cfa_off */
	DWUNW_CFA_DEREF,      /* the word at cfa_reg + cfa_off: functions that align their stack */
	DWUNW_CFA_PLT,	      /* cfa_reg + cfa_off + ((rip & 15) >= plt_n) * 8, of rsp */
	DWUNW_CFA_OTHER,      /* only row->full says it */
};

/* Registers but the return address that a function saves for its caller: rbx, rbp, r12 to r15. */
#define DWUNW_CFI_MAX_SAVED    6
#define DWUNW_CFI_CALLEE_SAVED (1u << 3 | 1u << 6 | 0xfu << 12)

/*
 * The rules at one address, one cache line.  A register that is neither saved nor undefined keeps
 * its value; the caller's rsp is the CFA.
 *
 * Of a SIMPLE row, and of a FULL row that is whole, everything is in these fields.  Of any other
 * FULL row only cfa_* and signal are set; the rest is in full.
 */
struct dwunw_cfi_row {
	const struct dwunw_cfi_rules
		*full; /* only if FULL; lives as long as the struct dwunw_cfi */
	int32_t cfa_off;
	int32_t ra_off;	    /* the return address is at CFA + ra_off */
	uint32_t undefined; /* bit r: the caller's register r cannot be known */
	uint8_t kind;	    /* enum dwunw_cfi_kind */
	bool signal;	    /* this is a signal trampoline */
	uint8_t cfa_reg;
	uint8_t nr_saved;
	uint8_t cfa_shape; /* enum dwunw_cfa_shape */
	uint8_t plt_n;	   /* of DWUNW_CFA_PLT */
	bool whole;	   /* FULL, but a hot loop that knows the shape of the CFA needs no more */
	uint8_t by_reg;	   /* bit i: off[i] counts from the value of cfa_reg, not from the CFA */
	uint8_t reg[DWUNW_CFI_MAX_SAVED];
	int32_t off[DWUNW_CFI_MAX_SAVED]; /* reg[i] is at CFA + off[i] */
};

struct dwunw_cfi; /* the rules of one ELF file, as far as they were requested */

/* New, for @elf, which is borrowed.  Returns NULL when out of memory. */
struct dwunw_cfi *dwunw_cfi_new(Elf *elf);
void dwunw_cfi_free(struct dwunw_cfi *cfi);

/* The rules at @addr, as the file counts it; *row is valid until the next call.  Returns 0 or
 * -ENOMEM. */
int dwunw_cfi_find(struct dwunw_cfi *cfi, uint64_t addr, const struct dwunw_cfi_row **row);

/* The same, not cached and not packed.  Returns 1 with *rules, 0 when there are none at @addr, or
 * -ENOMEM. */
int dwunw_cfi_rules_at(struct dwunw_cfi *cfi, uint64_t addr, struct dwunw_cfi_rules *rules);

#endif
