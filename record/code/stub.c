/* stub.c - see stub.h */
#include "record/code/stub.h"

#include <gelf.h>
#include <stdbool.h>
#include <string.h>

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
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	GElf_Sym sym;

	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) ||
		    (sh.sh_type != SHT_DYNSYM && sh.sh_type != SHT_SYMTAB))
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
			const char *name;

			if (sym.st_value != resolver || GELF_ST_TYPE(sym.st_info) != STT_GNU_IFUNC)
				continue;
			name = elf_strptr(elf, sh.sh_link, sym.st_name);
			if (name && !strcmp(name, "memset"))
				return true;
		}
	}
	return false;
}

/* The function that is named by a relocation in the section @sh. */
static enum stub_kind named(Elf *elf, const GElf_Rela *rela, const GElf_Shdr *sh, uint64_t *address)
{
	Elf_Scn *symbols = elf_getscn(elf, sh->sh_link);
	Elf_Data *data = symbols ? elf_getdata(symbols, NULL) : NULL;
	const char *name;
	GElf_Shdr table;
	GElf_Sym sym;

	if (!data || !gelf_getshdr(symbols, &table) ||
	    !gelf_getsym(data, (int)GELF_R_SYM(rela->r_info), &sym))
		return STUB_UNKNOWN;
	name = elf_strptr(elf, table.sh_link, sym.st_name);
	if (name && !strcmp(name, "memset"))
		return STUB_MEMSET;
	if (sym.st_shndx == SHN_UNDEF || GELF_ST_TYPE(sym.st_info) != STT_FUNC)
		return STUB_UNKNOWN;
	*address = sym.st_value;
	return STUB_HERE;
}

enum stub_kind stub_find(Elf *elf, uint64_t slot, uint64_t *address)
{
	GElf_Rela rela;
	GElf_Shdr sh;

	if (!find_relocation(elf, slot, &rela, &sh))
		return STUB_UNKNOWN;
	switch (GELF_R_TYPE(rela.r_info)) {
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_GLOB_DAT:
		return named(elf, &rela, &sh, address);
	case R_X86_64_RELATIVE:
		*address = (uint64_t)rela.r_addend;
		return STUB_HERE;
	case R_X86_64_IRELATIVE:
		return is_memset(elf, (uint64_t)rela.r_addend) ? STUB_MEMSET : STUB_UNKNOWN;
	default:
		return STUB_UNKNOWN;
	}
}
