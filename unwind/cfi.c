/* cfi.c - rows of call frame information from libdw, cached by address */
#include "unwind/cfi.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "unwind/addr_index.h"
#include "unwind/cfi_check.h"
#include "unwind/dwunw.h"
#include "unwind/elf_util.h"

#define RBX 3 /* as DWARF numbers it */

struct dwunw_cfi {
	Elf *elf;
	Dwarf_CFI *eh; /* .eh_frame, or NULL; opened, as debug is, when first needed */
	bool eh_opened, debug_opened;
	Dwarf *dwarf;	  /* holds .debug_frame; opened only when .eh_frame does not know */
	Dwarf_CFI *debug; /* belongs to dwarf */
	struct dwunw_addr_index index;
	struct dwunw_cfi_row *rows;
	uint32_t nr_rows, room;
};

/*
 * libdw goes by the program headers when there is no section .eh_frame.  In a reduced image these
 * say where things were in the whole file, so that is only for files without section headers.
 */
static bool has_eh_frame(Elf *elf)
{
	GElf_Shdr shdr;
	size_t nr = 0;

	if (elf_getshdrnum(elf, &nr))
		return false;
	return !nr || dwunw_elf_section(elf, ".eh_frame", &shdr);
}

struct dwunw_cfi *dwunw_cfi_new(Elf *elf)
{
	struct dwunw_cfi *cfi = calloc(1, sizeof(*cfi));

	if (!cfi)
		return NULL;
	cfi->elf = elf;
	return cfi;
}

void dwunw_cfi_free(struct dwunw_cfi *cfi)
{
	if (!cfi)
		return;
	for (uint32_t i = 0; i < cfi->nr_rows; i++)
		free(cfi->rows[i].frame);
	free(cfi->rows);
	dwunw_addr_index_release(&cfi->index);
	dwarf_end(cfi->dwarf);
	if (cfi->eh)
		dwarf_cfi_end(cfi->eh);
	free(cfi);
}

static void open_eh_frame(struct dwunw_cfi *cfi)
{
	cfi->eh_opened = true;
	if (has_eh_frame(cfi->elf) && dwunw_cfi_check_eh(cfi->elf))
		cfi->eh = dwarf_getcfi_elf(cfi->elf);
}

static void open_debug_frame(struct dwunw_cfi *cfi)
{
	GElf_Shdr shdr;

	cfi->debug_opened = true;
	if (!dwunw_elf_section(cfi->elf, ".debug_frame", &shdr) &&
	    !dwunw_elf_section(cfi->elf, ".zdebug_frame", &shdr))
		return;
	cfi->dwarf = dwarf_begin_elf(cfi->elf, DWARF_C_READ, NULL);
	if (cfi->dwarf && dwunw_cfi_check_debug(cfi->elf))
		cfi->debug = dwarf_getcfi(cfi->dwarf);
}

static Dwarf_Frame *frame_at(struct dwunw_cfi *cfi, uint64_t addr)
{
	Dwarf_Frame *frame = NULL;

	if (!cfi->eh_opened)
		open_eh_frame(cfi);
	if (cfi->eh && !dwarf_cfi_addrframe(cfi->eh, addr, &frame))
		return frame;
	if (!cfi->debug_opened)
		open_debug_frame(cfi);
	if (cfi->debug && !dwarf_cfi_addrframe(cfi->debug, addr, &frame))
		return frame;
	return NULL;
}

enum dwunw_cfi_rule dwunw_cfi_full_rule(const struct dwunw_cfi_row *row, int reg, Dwarf_Op mem[3],
					Dwarf_Op **ops, size_t *nops)
{
	if (dwarf_frame_register(row->frame, reg, mem, ops, nops))
		return DWUNW_CFI_RULE_UNDEFINED;
	if (*nops)
		return DWUNW_CFI_RULE_EXPR;
	/* libdw (0.188) means to say of rbx that it is the same if there is no rule, but says it of
	 * rax.  A function that destroys rbx does not exist. */
	if (reg == RBX)
		return DWUNW_CFI_RULE_SAME;
	return *ops ? DWUNW_CFI_RULE_UNDEFINED : DWUNW_CFI_RULE_SAME;
}

static bool fits(int32_t *to, Dwarf_Word number)
{
	*to = (int32_t)(uint32_t)number;
	return (Dwarf_Word)(int64_t)*to == number;
}

/* Whether the rule says "in memory at CFA + *off". */
static bool saved_at_cfa(const Dwarf_Op *ops, size_t nops, int32_t *off)
{
	*off = 0;
	if (ops[0].atom != DW_OP_call_frame_cfa || nops > 2)
		return false;
	return nops == 1 || (ops[1].atom == DW_OP_plus_uconst && fits(off, ops[1].number));
}

/* Fill row->cfa_*.  False when the CFA is not simply a register and an offset. */
static bool simple_cfa(struct dwunw_cfi_row *row)
{
	const Dwarf_Op *op;
	Dwarf_Op *ops;
	Dwarf_Word reg;
	size_t nops;

	if (dwarf_frame_cfa(row->frame, &ops, &nops) || nops != 1)
		return false;
	op = &ops[0];
	reg = op->atom == DW_OP_bregx ? op->number : (Dwarf_Word)op->atom - DW_OP_breg0;
	row->cfa_reg = (uint8_t)reg;
	return reg < DWUNW_MAX_ARCH_REGS &&
	       fits(&row->cfa_off, op->atom == DW_OP_bregx ? op->number2 : op->number);
}

/* Take the rule of @reg into a simple row.  False when it does not fit there. */
static bool simple_register(struct dwunw_cfi_row *row, int reg)
{
	Dwarf_Op mem[3], *ops;
	size_t nops;
	int32_t off;
	enum dwunw_cfi_rule rule = dwunw_cfi_full_rule(row, reg, mem, &ops, &nops);

	if (reg == DWUNW_X86_64_RSP) /* the caller's rsp is the CFA, if nothing else is said */
		return rule == DWUNW_CFI_RULE_SAME ||
		       (rule == DWUNW_CFI_RULE_EXPR && nops == 2 &&
			ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_stack_value);
	if (rule == DWUNW_CFI_RULE_SAME)
		return reg != DWUNW_X86_64_RIP;
	if (rule == DWUNW_CFI_RULE_UNDEFINED) {
		row->undefined |= DWUNW_CFI_CALLEE_SAVED & 1u << reg;
		return true;
	}
	if (!saved_at_cfa(ops, nops, &off))
		return false;
	if (reg == DWUNW_X86_64_RIP) {
		row->ra_off = off;
		return true;
	}
	if (!(DWUNW_CFI_CALLEE_SAVED & 1u << reg))
		return false;
	row->reg[row->nr_saved] = (uint8_t)reg;
	row->off[row->nr_saved++] = off;
	return true;
}

static bool is_simple(struct dwunw_cfi_row *row)
{
	if (!simple_cfa(row))
		return false;
	for (int reg = 0; reg < DWUNW_MAX_ARCH_REGS; reg++)
		if (!simple_register(row, reg))
			return false;
	return true;
}

static void fill_row(struct dwunw_cfi *cfi, struct dwunw_cfi_row *row, uint64_t addr)
{
	Dwarf_Op mem[3], *ops;
	enum dwunw_cfi_rule rule;
	size_t nops;

	row->frame = frame_at(cfi, addr);
	/* Any other column for the return address is not of x86-64. */
	if (!row->frame ||
	    dwarf_frame_info(row->frame, NULL, NULL, &row->signal) != DWUNW_X86_64_RIP)
		goto drop;
	rule = dwunw_cfi_full_rule(row, DWUNW_X86_64_RIP, mem, &ops, &nops);
	/* A function that left its return address in rip would never return. */
	if (rule == DWUNW_CFI_RULE_SAME)
		goto drop;
	if (rule == DWUNW_CFI_RULE_UNDEFINED) {
		row->kind = DWUNW_CFI_OUTERMOST;
		goto drop;
	}
	if (!is_simple(row)) {
		row->kind = DWUNW_CFI_FULL;
		return;
	}
	row->kind = DWUNW_CFI_SIMPLE;
drop:
	free(row->frame);
	row->frame = NULL;
}

static int make_room(struct dwunw_cfi *cfi)
{
	uint32_t room = cfi->room ? 2 * cfi->room : 64;
	struct dwunw_cfi_row *rows;

	if (cfi->nr_rows < cfi->room)
		return 0;
	rows = room > cfi->room ? reallocarray(cfi->rows, room, sizeof(*rows)) : NULL;
	if (!rows)
		return -ENOMEM;
	cfi->rows = rows;
	cfi->room = room;
	return 0;
}

static int add_row(struct dwunw_cfi *cfi, uint64_t addr)
{
	struct dwunw_cfi_row *row;

	if (make_room(cfi) || dwunw_addr_index_add(&cfi->index, addr, cfi->nr_rows))
		return -ENOMEM;
	row = &cfi->rows[cfi->nr_rows++];
	*row = (struct dwunw_cfi_row){.kind = DWUNW_CFI_NONE};
	fill_row(cfi, row, addr);
	return 0;
}

int dwunw_cfi_find(struct dwunw_cfi *cfi, uint64_t addr, const struct dwunw_cfi_row **row)
{
	uint32_t nr = dwunw_addr_index_find(&cfi->index, addr);

	if (nr == DWUNW_NOT_FOUND) {
		if (add_row(cfi, addr))
			return -ENOMEM;
		nr = cfi->nr_rows - 1;
	}
	*row = &cfi->rows[nr];
	return 0;
}
