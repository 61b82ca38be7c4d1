/* go_rows.c - see go_rows.h */
#include "unwind/cfi/go_rows.h"

#include <string.h>

#include "unwind/elf/elf_util.h"

/* Registers that a function of C keeps for its caller, by DWARF number. */
enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, R13, R14, R15 };

/* crosscall2 of Go up to 1.19 saves all of them, which C calls; 72 bytes below its return address
 * is the stack pointer when it has called.  Later ones save them elsewhere. */
#define CROSSCALL_FRAME 72

void dwunw_go_table_open(struct dwunw_pclntab *table, Elf *elf)
{
	GElf_Shdr sh;
	Elf_Scn *scn = dwunw_elf_section(elf, ".gopclntab", &sh);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;

	dwunw_pclntab_open(table, data ? data->d_buf : NULL, data ? data->d_size : 0);
}

/* Go's functions keep no register, but for the frame pointer, and none of them needs one to find
 * its caller.  A function of C that calls Go does need them, and calls crosscall2. */
static void keep_registers(struct dwunw_cfi_row *row)
{
	static const uint8_t saved[] = {RBX, R12, R13, R14, R15, RBP};

	if (row->cfa_off != CROSSCALL_FRAME + 8) {
		row->undefined = DWUNW_CFI_CALLEE_SAVED;
		return;
	}
	for (unsigned int i = 0; i < sizeof(saved); i++) {
		row->reg[i] = saved[i];
		row->off[i] = 8 * (int32_t)i - 56;
	}
	row->nr_saved = sizeof(saved);
}

/* Those that change to another stack and come back from it by what they noted there. */
static bool joins(const char *name)
{
	return !strcmp(name, "runtime.asmcgocall") || !strcmp(name, "runtime.cgocallback");
}

bool dwunw_go_row(const struct dwunw_pclntab *table, uint64_t addr, struct dwunw_cfi_row *row)
{
	struct dwunw_pcln_function f;
	int32_t frame;

	if (!dwunw_pclntab_find(table, addr, &f))
		return false;
	*row = (struct dwunw_cfi_row){.kind = DWUNW_CFI_SWITCH};
	/* What a signal interrupted is another stack, too. */
	if (f.flags & DWUNW_PCLN_TOP) {
		if (strcmp(f.name, "runtime.sigtramp") != 0)
			row->kind = DWUNW_CFI_OUTERMOST;
		return true;
	}
	if (!dwunw_pclntab_frame(table, &f, addr, &frame)) {
		row->kind = DWUNW_CFI_NONE;
		return true;
	}
	row->cfa_reg = RSP;
	row->cfa_off = frame + 8;
	row->ra_off = -8;
	if (f.flags & DWUNW_PCLN_SP_SET)
		row->whole = joins(f.name);
	else
		row->kind = DWUNW_CFI_SIMPLE;
	if (!strcmp(f.name, "crosscall2"))
		keep_registers(row);
	return true;
}
