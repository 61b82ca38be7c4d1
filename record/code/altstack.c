/* altstack.c - see altstack.h */
#include "record/code/altstack.h"

#include <gelf.h>
#include <string.h>
#include <unistd.h>

#include "record/module/elffile.h"

/* Has a symbol table of @elf the function sigaltstack, be it its own or another file's? */
static bool names_it(Elf *elf)
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
			const char *name = elf_strptr(elf, sh.sh_link, sym.st_name);

			if (name && !strcmp(name, "sigaltstack"))
				return true;
		}
	}
	return false;
}

static bool uses_it(const struct target *t, const struct mlk_mapping *m)
{
	int fd = target_open_mapped(t, m);
	Elf *elf = fd < 0 ? NULL : elffile_open(fd);
	bool result = elf && (names_it(elf) || elffile_section(elf, ".go.buildinfo") ||
			      elffile_section(elf, ".note.go.buildid"));

	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return result;
}

bool altstack_is_used(const struct target *t, const struct loaded_objects *objects)
{
	for (size_t i = 0; i < objects->nr; i++)
		if (!target_is_libc(objects->v[i]->path) && uses_it(t, objects->v[i]))
			return true;
	return false;
}
