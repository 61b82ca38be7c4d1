/* object.c - which variable or table is at a place of a file: see dwunw_symbol.h */
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/dwunw_symbol.h"
#include "unwind/module/dwunw_state.h"
#include "unwind/symbol/demangle.h"

/* The address, as the file counts it, of what is at @offset in it; false: that is not loaded. */
static bool find_address(Elf *elf, uint64_t offset, uint64_t *addr)
{
	GElf_Phdr ph;
	size_t nr = 0;

	if (elf_getphdrnum(elf, &nr))
		return false;
	for (size_t i = 0; i < nr && gelf_getphdr(elf, (int)i, &ph); i++) {
		if (ph.p_type != PT_LOAD || offset < ph.p_offset ||
		    offset - ph.p_offset >= ph.p_filesz)
			continue;
		*addr = offset - ph.p_offset + ph.p_vaddr;
		return true;
	}
	return false;
}

/* The name of the object of the symbol table @section that @addr lies in; NULL: none. */
static const char *find_in(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, uint64_t addr)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym sym;

	for (int i = 0; data && gelf_getsym(data, i, &sym); i++)
		if (GELF_ST_TYPE(sym.st_info) == STT_OBJECT && sym.st_shndx != SHN_UNDEF &&
		    addr >= sym.st_value && addr - sym.st_value < sym.st_size)
			return elf_strptr(elf, header->sh_link, sym.st_name);
	return NULL;
}

int dwunw_object_name(struct dwunw *dw, uint32_t module, uint64_t offset, char **name)
{
	const struct dwunw_module *found = dwunw_module_get(dw, module);
	const char *raw = NULL;
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	uint64_t addr;

	*name = NULL;
	if (!found || !find_address(found->elf, offset, &addr))
		return 0;
	while (!raw && (section = elf_nextscn(found->elf, section)) != NULL)
		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB))
			raw = find_in(found->elf, section, &header, addr);
	if (!raw || !*raw)
		return 0;
	*name = dwunw_demangle(raw, strnlen(raw, DWUNW_MAX_NAME));
	return *name ? 0 : -ENOMEM;
}
