/* go_table.c - see go_table.h */
#include "record/module/go_table.h"

#include <string.h>

#include "record/module/elffile.h"
#include "unwind/golang/pclntab.h"

#define ALIGNMENT 32 /* of a table */

/* What relocation of @elf is there for the word at @vaddr?  Those of a position independent file
 * are sorted in no way that could be relied on. */
static bool find_relocation(Elf *elf, uint64_t vaddr, uint64_t *word)
{
	Elf_Scn *scn = elffile_section(elf, ".rela.dyn");
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	size_t nr = data ? data->d_size / sizeof(Elf64_Rela) : 0;
	GElf_Rela rela;

	for (size_t i = 0; i < nr && gelf_getrela(data, (int)i, &rela); i++)
		if (rela.r_offset == vaddr && GELF_R_TYPE(rela.r_info) == R_X86_64_RELATIVE) {
			*word = (uint64_t)rela.r_addend;
			return true;
		}
	return false;
}

uint64_t go_table_word(Elf *elf, uint64_t vaddr)
{
	uint64_t word = 0;
	size_t len;
	const void *bytes = elffile_bytes(elf, vaddr, sizeof(word), &len);

	if (bytes && len == sizeof(word))
		memcpy(&word, bytes, sizeof(word));
	if (!word)
		find_relocation(elf, vaddr, &word);
	return word;
}

/* Is there a table at the offset @at of the section @data, which begins at @addr? */
static bool is_table(Elf *elf, const Elf_Data *data, uint64_t addr, size_t at, struct go_table *t)
{
	struct dwunw_pclntab table;
	struct dwunw_pcln_function first;

	t->bytes = (const uint8_t *)data->d_buf + at;
	t->len = data->d_size - at;
	if (!dwunw_pclntab_open(&table, t->bytes, t->len) ||
	    !dwunw_pclntab_function(&table, 0, &first))
		return false;
	t->text = table.text ? table.text : go_table_word(elf, addr + at + DWUNW_PCLNTAB_TEXT);
	return true;
}

static bool find_in_section(Elf *elf, const char *name, bool anywhere, struct go_table *t)
{
	Elf_Scn *scn = elffile_section(elf, name);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	GElf_Shdr sh;

	if (!data || !data->d_buf || !gelf_getshdr(scn, &sh))
		return false;
	for (size_t at = 0; at < data->d_size && (!at || anywhere); at += ALIGNMENT)
		if (is_table(elf, data, sh.sh_addr, at, t))
			return true;
	return false;
}

bool go_table_find(Elf *elf, struct go_table *t)
{
	/* Other programs have no section of the first two names; only of Go's the third is looked
	 * through. */
	if (find_in_section(elf, GO_TABLE_SECTION, false, t) ||
	    find_in_section(elf, ".data.rel.ro.gopclntab", false, t))
		return true;
	return elffile_section(elf, ".go.buildinfo") &&
	       find_in_section(elf, ".data.rel.ro", true, t);
}
