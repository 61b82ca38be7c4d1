/* dwz_file.c - see dwz_file.h */
#include "unwind/module/dwz_file.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <string.h>

#include "unwind/module/filesearch.h"

/* The directory of alternate files below those of debug files, as distributions have it. */
#define DWZ_DIR "/.dwz/"

/* Try the files that @name may mean: as it is, seen from the file that names it, and below each
 * directory.
 */
static int try_name(struct dwunw_file_search *s, const char *from, const char *name)
{
	const char *slash = from ? strrchr(from, '/') : NULL, *dwz = strstr(name, DWZ_DIR);
	int err = 0;

	if (*name == '/')
		err = dwunw_file_try(s, "%s", name);
	else if (slash)
		err = dwunw_file_try(s, "%.*s/%s", (int)(slash - from), from, name);
	for (size_t i = 0; !err && dwz && i < s->dirs->nr; i++)
		err = dwunw_file_try(s, "%s%s", s->dirs->dir[i], dwz);
	return err;
}

/*
 * If it is given no alternate file, libdw opens the one whose path is in the section, whatever that
 * is, as soon as it meets a reference to it.  So it gets one that is empty: this ELF file, with
 * nothing but the shortest .debug_line that libdw takes for debug information.
 */
static int set_empty(struct dwunw_debugfile *file)
{
	static const struct {
		Elf64_Ehdr ehdr;
		Elf64_Shdr shdr[3];
		char names[32];
	} image = {
		.ehdr = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT},
			 .e_type = ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_ehsize = sizeof(Elf64_Ehdr),
			 .e_shoff = sizeof(Elf64_Ehdr),
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = 3,
			 .e_shstrndx = 1},
		.shdr = {{0},
			 {.sh_name = 1,
			  .sh_type = SHT_STRTAB,
			  .sh_offset = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr),
			  .sh_size = 32,
			  .sh_addralign = 1},
			 {.sh_name = 11,
			  .sh_type = SHT_PROGBITS,
			  .sh_offset = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr),
			  .sh_size = 1,
			  .sh_addralign = 1}},
		.names = "\0.shstrtab\0.debug_line",
	};

	file->alt = DWUNW_DWARF_FILE_NONE;
	file->alt.elf = elf_memory((char *)(uintptr_t)&image, sizeof(image));
	if (file->alt.elf)
		file->alt.dwarf = dwarf_begin_elf(file->alt.elf, DWARF_C_READ, NULL);
	return file->alt.dwarf ? 0 : -ENOMEM;
}

int dwunw_dwz_file_find(struct dwunw_debugfile *file, const struct dwunw_debug_dirs *dirs)
{
	struct dwunw_build_id id = {0};
	struct dwunw_file_search s = {.out = &file->alt, .dirs = dirs, .key = {.id = &id}};
	const char *name;
	const void *bytes;
	ssize_t len = dwelf_dwarf_gnu_debugaltlink(file->main.dwarf, &name, &bytes);
	int err = 0;

	if (len > 0 && len <= DWUNW_MAX_BUILD_ID) {
		id.len = (size_t)len;
		memcpy(id.bytes, bytes, id.len);
		err = dwunw_file_try_build_id(&s);
		if (!err)
			err = try_name(&s, file->main.path, name);
		if (!err)
			err = dwunw_file_try_fetch(&s);
	}
	if (len > 0 && !file->alt.dwarf)
		file->notes |= DWUNW_NOTE_NO_ALT;
	if (!err && !file->alt.dwarf)
		err = set_empty(file);
	if (err)
		return err;
	dwarf_setalt(file->main.dwarf, file->alt.dwarf);
	/* Nor is there an alternate of the alternate. */
	dwarf_setalt(file->alt.dwarf, file->alt.dwarf);
	return 0;
}
