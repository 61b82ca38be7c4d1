/* bound_past.c - see bound_past.h */
#include "record/module/bound_past.h"

#include <string.h>
#include <unistd.h>

#include "record/module/elffile.h"

static const char *const names[] = {"malloc",	      "calloc",	       "realloc",
				    "posix_memalign", "aligned_alloc", "mmap"};

/* Is @rela, of the section @sh, the slot of one of these functions? */
static bool is_slot(Elf *elf, const GElf_Rela *rela, const GElf_Shdr *sh)
{
	const uint64_t type = GELF_R_TYPE(rela->r_info);
	Elf_Scn *symbols = elf_getscn(elf, sh->sh_link);
	Elf_Data *data = symbols ? elf_getdata(symbols, NULL) : NULL;
	const char *name = NULL;
	GElf_Shdr table;
	GElf_Sym sym;

	if ((type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) && data &&
	    gelf_getshdr(symbols, &table) &&
	    gelf_getsym(data, (int)GELF_R_SYM(rela->r_info), &sym) && sym.st_shndx == SHN_UNDEF)
		name = elf_strptr(elf, table.sh_link, sym.st_name);
	for (size_t i = 0; name && i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Does the word at @address of @t point into the C library? */
static bool leads_to_libc(const struct target *t, const struct maps *maps, uint64_t address)
{
	const struct mlk_mapping *m = NULL;
	uint64_t word;

	if (!target_read_memory(t, address, &word, sizeof(word)))
		m = maps_find(maps, word);
	return m && target_is_libc(m->path);
}

static bool find_slot(Elf *elf, const struct target *t, const struct maps *maps, uint64_t bias)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data = NULL;
		GElf_Rela rela;
		GElf_Shdr sh;

		if (gelf_getshdr(section, &sh) && sh.sh_type == SHT_RELA)
			data = elf_getdata(section, NULL);
		for (int i = 0; data && gelf_getrela(data, i, &rela); i++)
			if (is_slot(elf, &rela, &sh) &&
			    leads_to_libc(t, maps, rela.r_offset + bias))
				return true;
	}
	return false;
}

bool module_is_bound_past(const struct target *t, const struct maps *maps,
			  const struct mlk_mapping *m)
{
	int fd = target_open_mapped(t, m);
	Elf *elf = fd < 0 ? NULL : elffile_open(fd);
	bool is =
		elf && find_slot(elf, t, maps, m->start - m->offset - elffile_bias(elf, m->offset));

	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return is;
}
