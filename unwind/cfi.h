/* cfi.h - call frame information: how to get from a place in the code to its caller */
#ifndef DWUNW_CFI_H
#define DWUNW_CFI_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

enum dwunw_cfi_kind {
	DWUNW_CFI_NONE,	     /* there is no information */
	DWUNW_CFI_OUTERMOST, /* the return address is undefined: there is no caller */
	DWUNW_CFI_SIMPLE,    /* all that matters is in the row */
	DWUNW_CFI_FULL,	     /* ask dwunw_cfi_full_*() */
};

/* Registers but the return address that a function saves for its caller: rbx, rbp, r12 to r15. */
#define DWUNW_CFI_MAX_SAVED    6
#define DWUNW_CFI_CALLEE_SAVED (1u << 3 | 1u << 6 | 0xfu << 12)

/* The rules at one address, one cache line.  If simple: CFA = register cfa_reg + cfa_off, and a
 * register that is neither saved nor undefined keeps its value. */
struct dwunw_cfi_row {
	Dwarf_Frame *frame; /* only if FULL */
	int32_t cfa_off;
	int32_t ra_off;	    /* the return address stands at CFA + ra_off */
	uint32_t undefined; /* bit r: the caller's register r cannot be known */
	uint8_t kind;	    /* enum dwunw_cfi_kind */
	bool signal;	    /* this is a signal trampoline */
	uint8_t cfa_reg;
	uint8_t nr_saved;
	uint8_t reg[DWUNW_CFI_MAX_SAVED];
	int32_t off[DWUNW_CFI_MAX_SAVED]; /* reg[i] stands at CFA + off[i] */
};

struct dwunw_cfi; /* the rules of one ELF file, as far as they were asked for */

/* New, for @elf, which is borrowed.  Returns NULL when out of memory. */
struct dwunw_cfi *dwunw_cfi_new(Elf *elf);
void dwunw_cfi_free(struct dwunw_cfi *cfi);

/* The rules at @addr, as the file counts it; *row is valid until the next call.  Returns 0 or
 * -ENOMEM. */
int dwunw_cfi_find(struct dwunw_cfi *cfi, uint64_t addr, const struct dwunw_cfi_row **row);

enum dwunw_cfi_rule {
	DWUNW_CFI_RULE_SAME,
	DWUNW_CFI_RULE_UNDEFINED, /* also what libdw gives for a register without any rule */
	DWUNW_CFI_RULE_EXPR,
};

/* The rule for the caller's register @reg of a full row; *ops and *nops are set for an expression
 * and may point to @mem. */
enum dwunw_cfi_rule dwunw_cfi_full_rule(const struct dwunw_cfi_row *row, int reg, Dwarf_Op mem[3],
					Dwarf_Op **ops, size_t *nops);

#endif
