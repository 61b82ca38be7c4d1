/* builtins.c - see builtins.h */
#include "unwind/module/builtins.h"

#include <gelf.h>
#include <string.h>

#define PREFIX "Builtins_"

/* Have the range hold @sym, if it is one of them. */
static void add_symbol(struct dwunw_builtins *builtins, const GElf_Sym *sym, const char *name)
{
	if (GELF_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_shndx == SHN_UNDEF ||
	    sym->st_value + sym->st_size < sym->st_value || !name ||
	    strncmp(name, PREFIX, strlen(PREFIX)))
		return;
	if (builtins->start == builtins->end || sym->st_value < builtins->start)
		builtins->start = sym->st_value;
	if (sym->st_value + sym->st_size > builtins->end)
		builtins->end = sym->st_value + sym->st_size;
}

static void look_in(struct dwunw_builtins *builtins, Elf *elf, Elf_Scn *section,
		    const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym sym;

	for (int i = 0; data && gelf_getsym(data, i, &sym); i++)
		add_symbol(builtins, &sym, elf_strptr(elf, header->sh_link, sym.st_name));
}

bool dwunw_builtins_have(struct dwunw_builtins *builtins, Elf *elf, uint64_t addr)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while (!builtins->known && (section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
			look_in(builtins, elf, section, &header);
	builtins->known = true;
	return addr >= builtins->start && addr < builtins->end;
}
