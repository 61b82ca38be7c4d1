/* debugfile.c - see debugfile.h */
#include "unwind/module/debugfile.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/module/dwz_file.h"
#include "unwind/module/filesearch.h"
#include "unwind/module/module.h"

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
static int try_link(struct dwunw_file_search *s, const struct dwunw_module *module,
		    const char *root)
{
	const char *path = module->path;
	int dir_len = (int)(strrchr(path, '/') - path), err;
	struct link link;

	if (!read_link(module->elf, &link))
		return 0;
	s->key.crc = &link.crc;
	err = dwunw_file_try(s, "%s%.*s/%s", root, dir_len, path, link.name);
	if (!err)
		err = dwunw_file_try(s, "%s%.*s/.debug/%s", root, dir_len, path, link.name);
	for (size_t i = 0; !err && i < s->dirs->nr; i++)
		err = dwunw_file_try(s, "%s%.*s/%s", s->dirs->dir[i], dir_len, path, link.name);
	s->key.crc = NULL;
	return err;
}

/* Try the module's path, and what lies next to it.  Names like [vdso] are no paths. */
static int try_module_path(struct dwunw_file_search *s, const struct dwunw_module *module)
{
	const char *roots[] = {s->dirs->symfs, ""};
	int err = 0;

	for (size_t i = 0; i < 2 && !err && module->path[0] == '/'; i++) {
		if (!roots[i])
			continue;
		err = dwunw_file_try(s, "%s%s", roots[i], module->path);
		if (!err)
			err = try_link(s, module, roots[i]);
	}
	return err;
}

static int find_main(struct dwunw_file_search *s, const struct dwunw_module *module)
{
	int err = dwunw_dwarf_file_borrow(s->out, module->elf);

	if (err == -EINVAL)
		s->unreadable = true;
	else if (err)
		return err;
	err = dwunw_file_try_build_id(s);
	if (!err)
		err = try_module_path(s, module);
	return err ? err : dwunw_file_try_fetch(s);
}

int dwunw_debugfile_find(struct dwunw_debugfile *out, const struct dwunw_module *module,
			 const struct dwunw_debug_dirs *dirs)
{
	struct dwunw_file_search s = {
		.out = &out->main,
		.symbols = &out->symbols,
		.dirs = dirs,
		.key = {.id = &module->id},
	};
	int err;

	*out = (struct dwunw_debugfile){DWUNW_DWARF_FILE_NONE, DWUNW_DWARF_FILE_NONE,
					DWUNW_DWARF_FILE_NONE, 0};
	err = find_main(&s, module);
	if (!err && !out->main.dwarf && s.unreadable)
		out->notes |= DWUNW_NOTE_UNREADABLE;
	if (!err && out->main.dwarf)
		err = dwunw_dwz_file_find(out, dirs);
	if (err)
		dwunw_debugfile_close(out);
	return err;
}
