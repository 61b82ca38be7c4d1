/* vmlinux.c - see vmlinux.h */
#include "unwind/module/vmlinux.h"

#include <errno.h>
#include <fts.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/dwunw.h"
#include "unwind/elf/elf_util.h"
#include "unwind/module/module.h"

bool dwunw_is_kernel(const struct dwunw_module *module)
{
	return !strcmp(module->path, DWUNW_KERNEL_PATH);
}

char *dwunw_vmlinux_path(const char *dir, const char *release, size_t i)
{
	/* of Debian and Ubuntu, of Fedora with /lib as it was and as it is, and of openSUSE */
	static const struct {
		const char *before, *behind;
	} places[DWUNW_VMLINUX_PATHS] = {
		{"boot/vmlinux-", ""},
		{"lib/modules/", "/vmlinux"},
		{"usr/lib/modules/", "/vmlinux"},
		{"usr/lib/modules/", "/vmlinux.debug"},
	};

	return dwunw_path("%s/%s%s%s", dir, places[i].before, release, places[i].behind);
}

bool dwunw_is_ko(const struct dwunw_module *module)
{
	size_t len = strlen(module->path);

	return len > 2 && module->path[0] == '[' && module->path[len - 1] == ']' &&
	       !dwunw_is_kernel(module);
}

/* Is @file called as the module at @path, [dm_mod]: dm-mod.ko or dm_mod.ko.debug? */
static bool is_file_of(const char *path, const char *file)
{
	for (path++; *path != ']'; path++, file++)
		if (*file != *path && (*file != '-' || *path != '_'))
			return false;
	return !strcmp(file, ".ko") || !strcmp(file, ".ko.debug");
}

int dwunw_ko_find(const struct dwunw_module *module, const char *dir, const char *release, size_t i,
		  char **path)
{
	static const char *const above[DWUNW_KO_DIRS] = {"lib/modules", "usr/lib/modules"};
	char *top = dwunw_path("%s/%s/%s", dir, above[i], release);
	char *const tops[] = {top, NULL};
	FTS *tree = top ? fts_open(tops, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL) : NULL;
	int err = tree ? 0 : -ENOMEM;
	FTSENT *entry;

	*path = NULL;
	while (tree && !*path && !err && (entry = fts_read(tree)) != NULL) {
		if (entry->fts_info != FTS_F || !is_file_of(module->path, entry->fts_name))
			continue;
		*path = strdup(entry->fts_path);
		err = *path ? 0 : -ENOMEM;
	}
	if (tree)
		fts_close(tree);
	free(top);
	return err;
}

/* The address where the code of @elf begins. */
static bool find_code(Elf *elf, uint64_t *addr)
{
	GElf_Phdr ph;
	size_t nr = 0;

	if (elf_getphdrnum(elf, &nr))
		return false;
	for (size_t i = 0; i < nr && gelf_getphdr(elf, (int)i, &ph); i++)
		if (ph.p_type == PT_LOAD && ph.p_flags & PF_X) {
			*addr = ph.p_vaddr;
			return true;
		}
	return false;
}

/* The value of the symbol _text in @elf. */
static bool find_text(Elf *elf, uint64_t *addr)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = dwunw_elf_section(elf, ".symtab", &shdr);
	Elf_Data *data = scn && shdr.sh_type == SHT_SYMTAB ? elf_getdata(scn, NULL) : NULL;
	GElf_Sym sym;

	for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
		const char *name = elf_strptr(elf, shdr.sh_link, sym.st_name);

		if (name && !strcmp(name, "_text") && sym.st_shndx != SHN_UNDEF) {
			*addr = sym.st_value;
			return true;
		}
	}
	return false;
}

uint64_t dwunw_vmlinux_shift(Elf *image, Elf *file)
{
	uint64_t here, there;

	if (!find_code(image, &here) || (!find_text(file, &there) && !find_code(file, &there)))
		return 0;
	return there - here;
}
