/* debugfile.c - see debugfile.h */
#include "unwind/module/debugfile.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwind/module/module.h"
#include "unwind/module/vmlinux.h"

/* A search for one file: each function below does nothing once it was found, and returns 0 or
 * -ENOMEM. */
struct search {
	struct dwunw_dwarf_file *out; /* out->dwarf tells whether it was found */
	/* The first file that is the right one, but has a symbol table only; NULL: not wanted. */
	struct dwunw_dwarf_file *symbols;
	const struct dwunw_debug_dirs *dirs;
	struct dwunw_file_key key;
	bool linked;	 /* one that was not linked is the right one only if the key says so */
	bool starved;	 /* there was too little memory to read one */
	bool unreadable; /* a file was the right one, but could not be read */
};

static bool has_symbols(Elf *elf)
{
	GElf_Shdr shdr;

	return dwunw_elf_section(elf, ".symtab", &shdr) && shdr.sh_type == SHT_SYMTAB;
}

/* A file that cannot be read is noted, and the search goes on. */
static int note_failure(struct search *s, int err)
{
	s->unreadable |= err == -EINVAL;
	s->starved |= err == -ENOBUFS;
	return err == -EINVAL || err == -ENOBUFS ? 0 : err;
}

static int try_path(struct search *s, const char *path)
{
	struct dwunw_dwarf_file file;
	int err = dwunw_dwarf_file_open(&file, path, &s->key);

	if (s->linked && file.elf && !dwunw_elf_is_linked(file.elf) && !file.relocated)
		dwunw_dwarf_file_close(&file);
	if (file.dwarf)
		*s->out = file;
	else if (file.elf && s->symbols && !s->symbols->elf && has_symbols(file.elf))
		*s->symbols = file;
	else
		dwunw_dwarf_file_close(&file);
	return note_failure(s, err);
}

/* Try @path, which is freed; NULL: there was no memory for it. */
static int try_file(struct search *s, char *path)
{
	int err = path ? 0 : -ENOMEM;

	if (path && !s->out->dwarf)
		err = try_path(s, path);
	free(path);
	return err;
}

/* Try the paths of the build-id below each directory: debug files, as distributions have them; the
 * files themselves, as links; and both in the cache of perf-buildid-cache(1). */
static int try_build_id(struct search *s)
{
	static const char *const ends[] = {".debug", "", "/debug", "/elf"};
	const struct dwunw_build_id *id = s->key.id;
	int err = 0;

	for (size_t i = 0; i < s->dirs->nr && id->len > 1; i++)
		for (size_t end = 0; !err && end < sizeof(ends) / sizeof(ends[0]); end++)
			err = try_file(s, dwunw_build_id_path(id, s->dirs->dir[i], ends[end]));
	return err;
}

/* Have it fetched, by the build-id. */
static int try_fetch(struct search *s)
{
	const struct dwunw_build_id *id = s->key.id;
	char *path;
	int err;

	if (s->out->dwarf || !s->dirs->fetch || !id->len)
		return 0;
	path = s->dirs->fetch(s->dirs->fetch_arg, id->bytes, id->len);
	if (!path)
		return 0;
	err = try_path(s, path);
	free(path);
	return err;
}

/* The directory of alternate files below those of debug files, as distributions have it. */
#define DWZ_DIR "/.dwz/"

/* Try the files that @name may mean: as it is, seen from the file that names it, and below each
 * directory.
 */
static int try_name(struct search *s, const char *from, const char *name)
{
	const char *slash = from ? strrchr(from, '/') : NULL, *dwz = strstr(name, DWZ_DIR);
	int err = 0;

	if (*name == '/')
		err = try_file(s, strdup(name));
	else if (slash)
		err = try_file(s, dwunw_path("%.*s/%s", (int)(slash - from), from, name));
	for (size_t i = 0; !err && dwz && i < s->dirs->nr; i++)
		err = try_file(s, dwunw_path("%s%s", s->dirs->dir[i], dwz));
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

/* Find the file into which dwz moved what several debug files have in common, if file->main names
 * one in .gnu_debugaltlink, and link both; what is not found is noted in file->notes.  Returns 0 or
 * -ENOMEM. */
static int find_dwz(struct dwunw_debugfile *file, const struct dwunw_debug_dirs *dirs)
{
	struct dwunw_build_id id = {0};
	struct search s = {.out = &file->alt, .dirs = dirs, .key = {.id = &id}};
	const char *name;
	const void *bytes;
	ssize_t len = dwelf_dwarf_gnu_debugaltlink(file->main.dwarf, &name, &bytes);
	int err = 0;

	if (len > 0 && len <= DWUNW_MAX_BUILD_ID) {
		id.len = (size_t)len;
		memcpy(id.bytes, bytes, id.len);
		err = try_build_id(&s);
		if (!err)
			err = try_name(&s, file->main.path, name);
		if (!err)
			err = try_fetch(&s);
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

void dwunw_debugfile_close(struct dwunw_debugfile *file)
{
	dwunw_dwarf_file_close(&file->main);
	dwunw_dwarf_file_close(&file->alt);
	dwunw_dwarf_file_close(&file->symbols);
}

/* What .gnu_debuglink says. */
struct link {
	const char *name;
	uint32_t crc;
};

/* Read .gnu_debuglink: a name, zeroes up to a multiple of 4, and the CRC.  The name comes with the
 * image, so it must not lead elsewhere. */
static bool read_link(Elf *elf, struct link *link)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = dwunw_elf_section(elf, ".gnu_debuglink", &shdr);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;
	const char *name = data ? data->d_buf : NULL;
	size_t crc_at;

	if (!name || !data->d_size || !memchr(name, '\0', data->d_size) || !*name ||
	    strchr(name, '/'))
		return false;
	crc_at = (strlen(name) + 4) & ~(size_t)3;
	if (crc_at > data->d_size || data->d_size - crc_at < sizeof(link->crc))
		return false;
	link->name = name;
	memcpy(&link->crc, name + crc_at, sizeof(link->crc));
	return true;
}

/* @root is put before the module's path. */
static int try_link(struct search *s, const struct dwunw_module *module, const char *root)
{
	const char *path = module->path;
	int dir_len = (int)(strrchr(path, '/') - path), err;
	struct link link;

	if (!read_link(module->elf, &link))
		return 0;
	s->key.crc = &link.crc;
	err = try_file(s, dwunw_path("%s%.*s/%s", root, dir_len, path, link.name));
	if (!err)
		err = try_file(s, dwunw_path("%s%.*s/.debug/%s", root, dir_len, path, link.name));
	for (size_t i = 0; !err && i < s->dirs->nr; i++)
		err = try_file(s,
			       dwunw_path("%s%.*s/%s", s->dirs->dir[i], dir_len, path, link.name));
	s->key.crc = NULL;
	return err;
}

/* Try the module's path, and what lies next to it.  Names like [vdso] are no paths. */
static int try_module_path(struct search *s, const struct dwunw_module *module)
{
	const char *roots[] = {s->dirs->symfs, ""};
	int err = 0;

	for (size_t i = 0; i < 2 && !err && module->path[0] == '/'; i++) {
		if (!roots[i])
			continue;
		s->key.mark = module->marked ? &module->mark : NULL;
		err = try_file(s, dwunw_path("%s%s", roots[i], module->path));
		s->key.mark = NULL;
		if (!err)
			err = try_link(s, module, roots[i]);
	}
	return err;
}

/* Try where distributions have the kernel's own, and those of its modules, below @dir. */
static int try_release_in(struct search *s, const struct dwunw_module *module, const char *dir)
{
	const char *release = s->dirs->release;
	int err = 0;

	for (size_t i = 0; !err && i < DWUNW_VMLINUX_PATHS && dwunw_is_kernel(module); i++)
		err = try_file(s, dwunw_vmlinux_path(dir, release, i));
	for (size_t i = 0; !err && i < DWUNW_KO_DIRS && dwunw_is_ko(module); i++) {
		char *path = NULL;

		err = dwunw_ko_find(module, dir, release, i, &path);
		if (!err && path)
			err = try_file(s, path);
	}
	return err;
}

/* The release comes with the trace, so it must not lead elsewhere. */
static int try_release(struct search *s, const struct dwunw_module *module)
{
	const char *release = s->dirs->release;
	int err = 0;

	if (!release || !*release || strchr(release, '/') || !strcmp(release, "..") ||
	    !strcmp(release, "."))
		return 0;
	for (size_t dir = 0; dir < s->dirs->nr && !err && !s->out->dwarf; dir++)
		err = try_release_in(s, module, s->dirs->dir[dir]);
	return err;
}

static int find_main(struct search *s, const struct dwunw_module *module)
{
	int err = dwunw_dwarf_file_borrow(s->out, module->elf);

	err = note_failure(s, err);
	if (!err && module->debug_file)
		err = try_file(s, strdup(module->debug_file));
	if (!err)
		err = try_build_id(s);
	if (!err)
		err = try_release(s, module);
	if (!err)
		err = try_module_path(s, module);
	return err ? err : try_fetch(s);
}

int dwunw_debugfile_find(struct dwunw_debugfile *out, const struct dwunw_module *module,
			 const struct dwunw_debug_dirs *dirs)
{
	struct search s = {
		.out = &out->main,
		.symbols = &out->symbols,
		.dirs = dirs,
		.key = {.id = &module->id, .unlinked = dirs->release && dwunw_is_ko(module)},
		.linked = true,
	};
	Elf *elf;
	int err;

	*out = (struct dwunw_debugfile){DWUNW_DWARF_FILE_NONE, DWUNW_DWARF_FILE_NONE,
					DWUNW_DWARF_FILE_NONE, 0, 0};
	err = find_main(&s, module);
	if (!err && !out->main.dwarf && s.unreadable)
		out->notes |= DWUNW_NOTE_UNREADABLE;
	if (!err && !out->main.dwarf && s.starved)
		out->notes |= DWUNW_NOTE_NO_MEMORY;
	if (!err && out->main.dwarf)
		err = find_dwz(out, dirs);
	elf = out->main.elf ? out->main.elf : out->symbols.elf;
	if (!err && elf && dwunw_is_kernel(module))
		out->shift = dwunw_vmlinux_shift(module->elf, elf);
	if (err)
		dwunw_debugfile_close(out);
	return err;
}

/* What of dwunw_debugfile_check() is true of @elf; NULL: it could not be opened. */
static int check_elf(Elf *elf, const struct dwunw_module *module)
{
	struct dwunw_build_id id;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !dwunw_elf_is_linked(elf))
		return DWUNW_ERR_ELF;
	dwunw_elf_build_id(elf, &id);
	if (!dwunw_build_id_equal(&id, &module->id))
		return DWUNW_ERR_OTHER;
	return dwunw_elf_has_debug_info(elf) ? 0 : DWUNW_ERR_NO_DEBUG;
}

int dwunw_debugfile_check(const char *path, const struct dwunw_module *module)
{
	size_t size;
	int fd = dwunw_file_open(path, &size), err;
	Elf *elf;

	if (fd < 0)
		return -ENOENT;
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	err = check_elf(elf, module);
	elf_end(elf);
	close(fd);
	return err;
}
