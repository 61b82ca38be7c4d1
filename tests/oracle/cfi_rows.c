/* cfi_rows.c - compare our rows of call frame information with libdw's, all of a file
 *
 * usage: cfi_rows FILE...
 *
 * The rows are those that libdw finds by going through each FDE that libdw enumerates.  Of each row
 * both its first and its last address are looked up.  Prints a line for each file; "refused" are
 * rows for which libdw has no CFA, and "unread" FDEs whose addresses this program cannot read.
 * Exit status: 1 if there is a difference.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/oracle/row_check.h"
#include "unwind/cfi/cfi.h"
#include "unwind/cfi/expr.h"

#define MAX_SHOWN 10

struct tally {
	unsigned long rows, fdes, differences, refused, unread;
};

/* The file at hand. */
struct file {
	const char *name;
	Elf *elf;
	Dwarf_CFI *libdw;
	struct dwunw_cfi *ours;
	Elf_Data *frames; /* .eh_frame */
	uint64_t frames_addr;
	struct tally tally;
};

static void differ(struct file *f, uint64_t addr, const char *what)
{
	if (f->tally.differences++ < MAX_SHOWN)
		printf("%s: %#" PRIx64 ": %s differs\n", f->name, addr, what);
}

/* Whether the bytes of @rule decode to @ops. */
static bool same_ops(const struct dwunw_cfi_rule *rule, const Dwarf_Op *ops, size_t nops)
{
	struct dwunw_expr_op op;
	size_t at = 0, nr = 0;

	for (; at < rule->expr_len; nr++) {
		if (nr == nops || !dwunw_expr_decode(rule->expr, rule->expr_len, &at, &op) ||
		    op.atom != ops[nr].atom)
			return false;
		/* libdw leaves some signed operands unsigned. */
		if (op.atom == DW_OP_const1s || op.atom == DW_OP_const2s ||
		    op.atom == DW_OP_const4s)
			continue;
		if (op.atom == DW_OP_skip || op.atom == DW_OP_bra) {
			if ((int16_t)op.number != (int16_t)ops[nr].number)
				return false;
			continue;
		}
		if (op.number != ops[nr].number || op.number2 != ops[nr].number2)
			return false;
	}
	return nr == nops;
}

/* libdw has no CFA where one of a register and an offset follows an expression. */
static bool same_cfa(struct file *f, const struct dwunw_cfi_rules *rules, Dwarf_Frame *frame)
{
	Dwarf_Op *ops;
	size_t nops;
	int err = dwarf_frame_cfa(frame, &ops, &nops);

	if (rules->cfa.kind == DWUNW_CFI_UNSPECIFIED)
		return err || !nops;
	if (err && rules->cfa.kind == DWUNW_CFI_REGISTER) {
		f->tally.refused++;
		return true;
	}
	if (err)
		return false;
	if (rules->cfa.kind == DWUNW_CFI_VAL_EXPR)
		return same_ops(&rules->cfa, ops, nops);
	if (nops != 1)
		return false;
	if (ops->atom == DW_OP_bregx)
		return ops->number == rules->cfa.reg && ops->number2 == rules->cfa.off;
	return ops->atom == DW_OP_breg0 + rules->cfa.reg && ops->number == rules->cfa.off;
}

/* Whether @ops, of libdw, say "at the CFA + @off", or, with @value, "the CFA + @off". */
static bool is_at_cfa(const Dwarf_Op *ops, size_t nops, uint64_t off, bool value)
{
	size_t expected = 1 + (off != 0) + value;

	return nops == expected && ops[0].atom == DW_OP_call_frame_cfa &&
	       (!off || (ops[1].atom == DW_OP_plus_uconst && ops[1].number == off)) &&
	       (!value || ops[nops - 1].atom == DW_OP_stack_value);
}

/* What libdw makes of a register without a rule: its ABI's defaults. */
static bool is_default(int reg, const Dwarf_Op *ops, size_t nops)
{
	if (reg == DWUNW_CFI_RSP)
		return is_at_cfa(ops, nops, 0, true);
	return !nops;
}

static bool same_register(const struct dwunw_cfi_rule *rule, Dwarf_Frame *frame, int reg)
{
	Dwarf_Op mem[3], *ops;
	size_t nops;

	if (dwarf_frame_register(frame, reg, mem, &ops, &nops))
		return false;
	switch (rule->kind) {
	case DWUNW_CFI_UNSPECIFIED:
		return is_default(reg, ops, nops);
	case DWUNW_CFI_UNDEFINED:
		return !nops && ops;
	case DWUNW_CFI_SAME:
		return !nops && !ops;
	case DWUNW_CFI_OFFSET:
	case DWUNW_CFI_VAL_OFFSET:
		return is_at_cfa(ops, nops, rule->off, rule->kind == DWUNW_CFI_VAL_OFFSET);
	case DWUNW_CFI_REGISTER:
		return nops == 1 && ops->atom == DW_OP_regx && ops->number == rule->reg;
	case DWUNW_CFI_VAL_EXPR:
		if (!nops || ops[--nops].atom != DW_OP_stack_value)
			return false;
		/* fallthrough */
	default:
		return nops && ops[0].atom == DW_OP_call_frame_cfa &&
		       same_ops(rule, ops + 1, nops - 1);
	}
}

/* @first: of the row.  It is where the one before ended; libdw itself, after DW_CFA_restore_state,
 * gives the beginning of the row that was remembered. */
static void compare_rules(struct file *f, uint64_t first, const struct dwunw_cfi_rules *rules,
			  Dwarf_Frame *frame)
{
	uint64_t addr = first;
	char what[32];
	Dwarf_Addr start, end;
	bool signal;

	if (dwarf_frame_info(frame, &start, &end, &signal) != DWUNW_CFI_RA ||
	    signal != rules->signal)
		differ(f, addr, "signal or return address column");
	if (start > rules->start || first != rules->start || end != rules->end)
		differ(f, addr, "range");
	if (!same_cfa(f, rules, frame))
		differ(f, addr, "CFA");
	for (int reg = 0; reg < DWUNW_CFI_REGS; reg++) {
		if (same_register(&rules->reg[reg], frame, reg))
			continue;
		snprintf(what, sizeof(what), "register %d", reg);
		differ(f, addr, what);
	}
}

static void compare_row(struct file *f, uint64_t addr, const struct dwunw_cfi_rules *rules)
{
	const struct dwunw_cfi_rule *ra = &rules->reg[DWUNW_CFI_RA];
	const struct dwunw_cfi_row *row;

	if (dwunw_cfi_find(f->ours, addr, &row) || row->signal != rules->signal ||
	    (row->kind == DWUNW_CFI_OUTERMOST) != (ra->kind == DWUNW_CFI_UNDEFINED)) {
		differ(f, addr, "row");
		return;
	}
	if (row->kind != DWUNW_CFI_SIMPLE && !row->whole)
		return;
	if (ra->kind != DWUNW_CFI_OFFSET || ra->off != (uint64_t)(int64_t)row->ra_off)
		differ(f, addr, "row's return address");
	if (!same_cfa_in_row(row, rules))
		differ(f, addr, "row's CFA");
	for (unsigned int reg = 0; reg < DWUNW_CFI_RA; reg++)
		if (!same_register_in_row(row, rules, reg))
			differ(f, addr, "row's register");
}

/* Compare at @addr, of a row that begins at @first, where libdw has @frame, or NULL. */
static void compare_at(struct file *f, uint64_t first, uint64_t addr, Dwarf_Frame *frame)
{
	struct dwunw_cfi_rules rules;
	int found = dwunw_cfi_rules_at(f->ours, addr, &rules);

	if (!frame != !found)
		differ(f, addr, frame ? "ours: nothing; presence" : "libdw: nothing; presence");
	if (!frame || found != 1)
		return;
	compare_rules(f, first, &rules, frame);
	compare_row(f, addr, &rules);
}

static void compare_fde(struct file *f, uint64_t start, uint64_t end)
{
	Dwarf_Addr row_start, next;
	Dwarf_Frame *frame;
	bool signal;

	f->tally.fdes++;
	for (uint64_t addr = start; addr < end; addr = next) {
		frame = NULL;
		next = end;
		if (!dwarf_cfi_addrframe(f->libdw, addr, &frame))
			dwarf_frame_info(frame, &row_start, &next, &signal);
		f->tally.rows++;
		compare_at(f, addr, addr, frame);
		if (next > addr + 1)
			compare_at(f, addr, next - 1, frame);
		free(frame);
		if (next <= addr)
			next = end;
	}
}

/* The encoding of addresses that the CIE at @at names; -1 when it cannot be told. */
static int encoding_of(struct file *f, Dwarf_Off at)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(f->elf, NULL);
	const uint8_t *data;
	Dwarf_CFI_Entry cie;
	Dwarf_Off next;

	if (dwarf_next_cfi(ident, f->frames, true, at, &next, &cie) || !dwarf_cfi_cie_p(&cie))
		return -1;
	if (cie.cie.augmentation[0] != 'z')
		return DW_EH_PE_absptr;
	data = cie.cie.augmentation_data;
	for (const char *p = cie.cie.augmentation + 1; *p; p++) {
		if (*p == 'R')
			return *data;
		if (*p == 'L')
			data++;
		if (*p == 'P')
			data += 1 + ((*data & 7) == DW_EH_PE_udata4   ? 4
				     : (*data & 7) == DW_EH_PE_udata2 ? 2
								      : 8);
	}
	return DW_EH_PE_absptr;
}

static int64_t number_at(const uint8_t *at, size_t size)
{
	int64_t value = 0;
	int32_t value4;

	memcpy(&value, at, size);
	memcpy(&value4, at, 4);
	return size == 4 ? value4 : value;
}

static void each_fde(struct file *f)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(f->elf, NULL);
	Dwarf_Off at = 0, next = 0, cie = (Dwarf_Off)-1;
	Dwarf_CFI_Entry entry;
	int encoding = -1, result;

	for (; (result = dwarf_next_cfi(ident, f->frames, true, at, &next, &entry)) != 1 &&
	       next != at && next != (Dwarf_Off)-1;
	     at = next) {
		const uint8_t *base = f->frames->d_buf, *p;
		uint64_t start;
		size_t size;

		if (result || dwarf_cfi_cie_p(&entry))
			continue;
		if (entry.CIE_id != cie)
			encoding = encoding_of(f, cie = entry.CIE_id);
		size = encoding == (DW_EH_PE_pcrel | DW_EH_PE_sdata4) ? 4 : 8;
		if (size == 8 && encoding != DW_EH_PE_absptr &&
		    encoding != (DW_EH_PE_pcrel | DW_EH_PE_sdata8)) {
			f->tally.unread++;
			continue;
		}
		p = entry.fde.start;
		start = (uint64_t)number_at(p, size);
		if (encoding & DW_EH_PE_pcrel)
			start += f->frames_addr + (uint64_t)(p - base);
		compare_fde(f, start, start + (uint64_t)number_at(p + size, size));
	}
}

static bool find_frames(struct file *f)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(f->elf, &names))
		return false;
	while ((scn = elf_nextscn(f->elf, scn)) != NULL) {
		const char *name;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(f->elf, names, shdr.sh_name);
		if (!name || strcmp(name, ".eh_frame"))
			continue;
		f->frames = elf_rawdata(scn, NULL);
		f->frames_addr = shdr.sh_addr;
		return f->frames && f->frames->d_buf;
	}
	return false;
}

static bool is_ours_to_read(Elf *elf)
{
	GElf_Ehdr ehdr;

	return elf && gelf_getehdr(elf, &ehdr) && ehdr.e_machine == EM_X86_64 &&
	       ehdr.e_ident[EI_CLASS] == ELFCLASS64 &&
	       (ehdr.e_type == ET_EXEC || ehdr.e_type == ET_DYN);
}

static void compare_file(const char *name, struct tally *sum)
{
	struct file f = {.name = name};
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	f.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!is_ours_to_read(f.elf) || !find_frames(&f))
		goto out;
	f.libdw = dwarf_getcfi_elf(f.elf);
	f.ours = dwunw_cfi_new(f.elf);
	if (f.libdw && f.ours)
		each_fde(&f);
	sum->differences += f.tally.differences;
	printf("rows %lu differences %lu refused %lu FDEs %lu unread %lu %s\n", f.tally.rows,
	       f.tally.differences, f.tally.refused, f.tally.fdes, f.tally.unread, name);
	fflush(stdout);
out:
	dwunw_cfi_free(f.ours);
	if (f.libdw)
		dwarf_cfi_end(f.libdw);
	elf_end(f.elf);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	struct tally sum = {0};

	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++)
		compare_file(argv[i], &sum);
	return sum.differences != 0;
}
