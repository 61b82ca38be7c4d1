/* returns.c - see returns.h */
#include "record/code/returns.h"

#include <Zydis/Zydis.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "record/code/returns_soon.h"
#include "record/module/elffile.h"

#define MOST_INSTRUCTIONS (1u << 15) /* a power of two; jemalloc's longest way takes 6,000 */
#define TABLE		  (2 * MOST_INSTRUCTIONS)
#define MOST_SLOTS	  256 /* for each, all relocations are looked through */

/* Where a jump through a slot of the global offset table leads. */
enum slot_kind {
	SLOT_UNKNOWN,
	SLOT_HERE,   /* to a function of the same file */
	SLOT_MEMSET, /* to memset, which returns its first argument */
};

struct walk {
	const struct returns_code *code;
	uint64_t entry, size;
	ZydisDecoder decoder;
	struct reached v[MOST_INSTRUCTIONS];
	size_t nr, nr_slots;	   /* of these, that jump through a slot */
	uint32_t by_offset[TABLE]; /* 1 + the index of an instruction; 0: none */
	size_t jumps[MOST_INSTRUCTIONS];
	const char *why;
};

/* The relocation of the slot at @slot, and the section that has it. */
static bool find_relocation(Elf *elf, uint64_t slot, GElf_Rela *rela, GElf_Shdr *sh)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, sh) || sh->sh_type != SHT_RELA)
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; data && gelf_getrela(data, i, rela); i++)
			if (rela->r_offset == slot)
				return true;
	}
	return false;
}

/* Is the function whose address @resolver finds memset? */
static bool is_memset(Elf *elf, uint64_t resolver)
{
	struct elf_symbols s = {.elf = elf};

	while (elffile_next_symbol(&s)) {
		const char *name =
			s.sym.st_value == resolver && GELF_ST_TYPE(s.sym.st_info) == STT_GNU_IFUNC
				? elffile_symbol_name(&s)
				: NULL;

		if (name && !strcmp(name, "memset"))
			return true;
	}
	return false;
}

/* The function that is named by a relocation in the section @sh. */
static enum slot_kind find_named(Elf *elf, const GElf_Rela *rela, const GElf_Shdr *sh,
				 uint64_t *address)
{
	Elf_Scn *symbols = elf_getscn(elf, sh->sh_link);
	Elf_Data *data = symbols ? elf_getdata(symbols, NULL) : NULL;
	const char *name;
	GElf_Shdr table;
	GElf_Sym sym;

	if (!data || !gelf_getshdr(symbols, &table) ||
	    !gelf_getsym(data, (int)GELF_R_SYM(rela->r_info), &sym))
		return SLOT_UNKNOWN;
	name = elf_strptr(elf, table.sh_link, sym.st_name);
	if (name && !strcmp(name, "memset"))
		return SLOT_MEMSET;
	if (sym.st_shndx == SHN_UNDEF || GELF_ST_TYPE(sym.st_info) != STT_FUNC)
		return SLOT_UNKNOWN;
	*address = sym.st_value;
	return SLOT_HERE;
}

/* What the dynamic loader will write into the slot at the address @slot of @elf, by its
 * relocations.  *@address is the function's if it is here.  (Should another library define a
 * function of that name, the jump leads there.) */
static enum slot_kind find_slot(Elf *elf, uint64_t slot, uint64_t *address)
{
	GElf_Rela rela;
	GElf_Shdr sh;

	if (!find_relocation(elf, slot, &rela, &sh))
		return SLOT_UNKNOWN;
	switch (GELF_R_TYPE(rela.r_info)) {
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_GLOB_DAT:
		return find_named(elf, &rela, &sh, address);
	case R_X86_64_RELATIVE:
		*address = (uint64_t)rela.r_addend;
		return SLOT_HERE;
	case R_X86_64_IRELATIVE:
		return is_memset(elf, (uint64_t)rela.r_addend) ? SLOT_MEMSET : SLOT_UNKNOWN;
	default:
		return SLOT_UNKNOWN;
	}
}

/* Is there a function at @at?  What lies behind a call that never returns is maybe none. */
static bool is_in_function(const struct walk *w, uint64_t at)
{
	Dwarf_Frame *frame = NULL;

	if (at - w->entry < w->size)
		return true;
	if (!w->code->cfi || dwarf_cfi_addrframe(w->code->cfi, at + w->code->bias, &frame))
		return false;
	free(frame);
	return true;
}

/* The instruction at @at is to be examined, if it was not already. */
static void reach(struct walk *w, uint64_t at)
{
	uint32_t *slot;
	size_t i = (at * 0x9e3779b97f4a7c15u) >> 32;

	if (at < w->code->start || at - w->code->start >= w->code->len) {
		w->why = "it leads out of the file's code";
		return;
	}
	for (;; i++) {
		slot = &w->by_offset[i % TABLE];
		if (!*slot)
			break;
		if (w->v[*slot - 1].at == at)
			return;
	}
	if (w->nr == MOST_INSTRUCTIONS) {
		w->why = "its code is too long";
		return;
	}
	w->v[w->nr++] = (struct reached){.at = at};
	*slot = (uint32_t)w->nr;
}

static bool decode_in(const struct returns_code *code, const ZydisDecoder *decoder, uint64_t at,
		      ZydisDecodedInstruction *insn)
{
	uint64_t into = at - code->start;

	return at >= code->start && into < code->len &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, code->text + into,
							  code->len - into, insn));
}

static bool decode(const struct walk *w, uint64_t at, ZydisDecodedInstruction *insn)
{
	return decode_in(w->code, &w->decoder, at, insn);
}

/* Is @insn, at @at, a jump to the address that a slot of the global offset table holds?  That is
 * *@slot. */
static bool is_slot_jump(const struct returns_code *code, uint64_t at,
			 const ZydisDecodedInstruction *insn, uint64_t *slot)
{
	*slot = at + code->bias + insn->length + (uint64_t)insn->raw.disp.value;
	return insn->mnemonic == ZYDIS_MNEMONIC_JMP && insn->opcode == 0xff &&
	       insn->raw.modrm.mod == 0 && insn->raw.modrm.rm == 5;
}

/* The jump @from leads to where the slot of the global offset table says. */
static void reach_by_slot(struct walk *w, struct reached *from, uint64_t slot)
{
	uint64_t address;

	if (w->nr_slots++ == MOST_SLOTS) {
		w->why = "it jumps to too many functions";
		return;
	}
	switch (find_slot(w->code->elf, slot, &address)) {
	case SLOT_HERE:
		from->to = address - w->code->bias;
		reach(w, from->to);
		break;
	case SLOT_MEMSET:
		from->how = JUMPS_TO_MEMSET;
		break;
	default:
		w->why = "it ends by a jump to another file's function";
	}
}

/* The jump @from leads to @at, maybe an entry of the procedure linkage table. */
static void reach_by_jump(struct walk *w, struct reached *from, uint64_t at, bool always)
{
	ZydisDecodedInstruction insn;
	uint64_t stub = at, slot;

	if (decode(w, stub, &insn) && insn.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
		stub += insn.length;
	if (always && decode(w, stub, &insn) && is_slot_jump(w->code, stub, &insn, &slot))
		reach_by_slot(w, from, slot);
	else if (is_in_function(w, at))
		reach(w, from->to = at);
	else
		w->why = "it jumps to code that no unwind table covers";
}

/* What @insn, the instruction @from, is followed by. */
static void follow(struct walk *w, struct reached *from, const ZydisDecodedInstruction *insn)
{
	uint64_t next = from->at + insn->length;
	bool always = insn->meta.category == ZYDIS_CATEGORY_UNCOND_BR;
	uint64_t slot;

	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_RET:
		from->how = RETURNS;
		if (insn->meta.branch_type != ZYDIS_BRANCH_TYPE_NEAR)
			w->why = "it returns to another segment";
		return;
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_COND_BR:
		from->ends = always;
		if (insn->raw.imm[0].is_relative)
			reach_by_jump(w, from, next + (uint64_t)insn->raw.imm[0].value.s, always);
		else if (is_slot_jump(w->code, from->at, insn, &slot))
			reach_by_slot(w, from, slot);
		else
			w->why = "it jumps to an address that it computes";
		if (!always)
			reach(w, next);
		return;
	case ZYDIS_CATEGORY_CALL:
		from->ends = !is_in_function(w, next);
		if (!from->ends)
			reach(w, next);
		return;
	default:
		break;
	}
	/* Where nothing comes back from. */
	from->ends = insn->mnemonic == ZYDIS_MNEMONIC_UD2 || insn->mnemonic == ZYDIS_MNEMONIC_HLT ||
		     insn->mnemonic == ZYDIS_MNEMONIC_INT3;
	if (!from->ends)
		reach(w, next);
}

/* Look at the @i-th instruction that was reached. */
static void follow_reached(struct walk *w, size_t i)
{
	ZydisDecodedInstruction insn;

	if (!decode(w, w->v[i].at, &insn)) {
		w->why = "it contains bytes that are not an instruction";
		return;
	}
	w->v[i].len = insn.length;
	follow(w, &w->v[i], &insn);
}

static int compare_reached(const void *a, const void *b)
{
	const struct reached *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int compare_sites(const void *a, const void *b)
{
	const struct returns_site *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int compare_jumps(const void *a, const void *b, void *reached)
{
	const struct reached *v = reached, *x = &v[*(const size_t *)a], *y = &v[*(const size_t *)b];

	return x->to < y->to ? -1 : x->to > y->to;
}

static const struct returns_site *find_site(const struct returns *in, uint64_t at)
{
	for (size_t i = 0; i < in->nr; i++)
		if (in->v[i].at == at)
			return &in->v[i];
	return NULL;
}

/* May the jump @site be added to @out: is there no probe for something else?  Of two at one place
 * it is not known which comes first. */
static bool agrees(const struct returns *out, const struct returns_code *code,
		   const struct returns_site *site)
{
	const struct returns_site *other = find_site(out, site->at);

	for (size_t i = 0; i < code->nr_probed; i++)
		if (code->probed[i] == site->at)
			return false;
	return !other ||
	       (other->how == site->how && other->reg == site->reg && other->when == site->when);
}

/* Add @site to @out, where another function may end, too.  False: there is no room. */
static bool add_site(struct returns *out, const struct returns_site *site)
{
	if (find_site(out, site->at))
		return true;
	if (out->nr == RETURNS_MAX)
		return false;
	out->v[out->nr++] = *site;
	return true;
}

#define MOST_SOON 16

/* Add to @out where the way to the `ret` @insn is known to end: at jumps before it, or there. */
static bool add_return(struct returns *out, const struct reached_code *r, size_t insn)
{
	const struct returns_site here = {.at = r->v[insn].at};
	struct returns_site soon[MOST_SOON];
	size_t nr = r->code->by_memory ? 0 : returns_soon(r, insn, soon, MOST_SOON);
	bool added = nr;

	for (size_t i = 0; added && i < nr; i++)
		added = agrees(out, r->code, &soon[i]);
	for (size_t i = 0; added && i < nr; i++)
		added = add_site(out, &soon[i]);
	return added || add_site(out, &here);
}

/* Put what was found into @out. */
static const char *collect_sites(struct walk *w, struct returns *out)
{
	struct reached_code r = {w->code, w->v, w->nr, w->entry, w->jumps, 0};
	const size_t before = out->nr;
	bool any = false, room = true;

	qsort(w->v, w->nr, sizeof(*w->v), compare_reached);
	for (size_t i = 1; i < w->nr; i++)
		if (w->v[i - 1].at + w->v[i - 1].len > w->v[i].at)
			return "it jumps into the middle of an instruction";
	for (size_t i = 0; i < w->nr; i++)
		if (w->v[i].to)
			w->jumps[r.nr_jumps++] = i;
	qsort_r(w->jumps, r.nr_jumps, sizeof(*w->jumps), compare_jumps, w->v);
	for (size_t i = 0; room && i < w->nr; i++) {
		const struct returns_site memset = {.at = w->v[i].at, .how = RETURNS_MEMSET};

		any |= w->v[i].how != GOES_ON;
		if (w->v[i].how == RETURNS)
			room = add_return(out, &r, i);
		else if (w->v[i].how == JUMPS_TO_MEMSET)
			room = add_site(out, &memset);
	}
	if (!room) {
		out->nr = before;
		return "it returns in too many places";
	}
	qsort(out->v, out->nr, sizeof(*out->v), compare_sites);
	return any ? NULL : "it never returns";
}

const char *returns_find(struct returns *out, const struct returns_code *code, uint64_t entry,
			 uint64_t size)
{
	struct walk *w = calloc(1, sizeof(*w));
	const char *why;

	if (!w)
		return "there is not enough memory";
	w->code = code;
	w->entry = entry;
	w->size = size;
	ZydisDecoderInit(&w->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	reach(w, entry);
	for (size_t i = 0; !w->why && i < w->nr; i++)
		follow_reached(w, i);
	why = w->why ? w->why : collect_sites(w, out);
	free(w);
	return why;
}

#define MOST_FORWARDS 8 /* two are usual, each by an entry of the procedure linkage table */

uint64_t returns_forwarded(const struct returns_code *code, uint64_t entry)
{
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;
	uint64_t at, slot, address;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (int i = 0; i < MOST_FORWARDS; i++) {
		at = entry;
		if (decode_in(code, &decoder, at, &insn) && insn.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
			at += insn.length;
		if (!decode_in(code, &decoder, at, &insn) || insn.mnemonic != ZYDIS_MNEMONIC_JMP)
			return entry;
		if (insn.raw.imm[0].is_relative)
			entry = at + insn.length + (uint64_t)insn.raw.imm[0].value.s;
		else if (is_slot_jump(code, at, &insn, &slot) &&
			 find_slot(code->elf, slot, &address) == SLOT_HERE)
			entry = address - code->bias;
		else
			return entry;
	}
	return entry;
}
