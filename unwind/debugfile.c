/* debugfile.c - see debugfile.h */
#include "unwind/debugfile.h"

#include <errno.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwind/elf_util.h"
#include "unwind/file.h"
#include "unwind/module.h"

/* One search: a candidate after the other, until one is taken. */
struct search {
	struct dwunw_debugfile *out;
	const struct dwunw_module *module;
	const struct dwunw_debug_dirs *dirs;
};

void dwunw_debugfile_close(struct dwunw_debugfile *file)
{
	dwarf_end(file->dwarf);
	elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	*file = (struct dwunw_debugfile){.fd = -1};
}

/* Take the file @path if it fits; s->out->dwarf tells whether it did. */
static void try_file(const struct search *s, const char *path)
{
	size_t size;
	struct dwunw_debugfile file = {.fd = dwunw_file_open(path, &size)};
	struct dwunw_build_id id;

	if (file.fd < 0)
		return;
	file.elf = elf_begin(file.fd, ELF_C_READ_MMAP, NULL);
	if (!file.elf || elf_kind(file.elf) != ELF_K_ELF)
		goto out;
	dwunw_elf_build_id(file.elf, &id);
	if (!dwunw_build_id_equal(&id, &s->module->id) || !dwunw_elf_has_debug_info(file.elf))
		goto out;
	file.dwarf = dwarf_begin_elf(file.elf, DWARF_C_READ, NULL);
	if (!file.dwarf)
		goto out;
	*s->out = file;
	return;
out:
	dwunw_debugfile_close(&file);
}

/* Try the path that printf() would make of the arguments, unless a file was found already. */
__attribute__((format(printf, 2, 3))) static int try_path(const struct search *s,
							  const char *format, ...)
{
	va_list args;
	char *path;
	int len;

	if (s->out->dwarf)
		return 0;
	va_start(args, format);
	len = vasprintf(&path, format, args);
	va_end(args);
	if (len < 0)
		return -ENOMEM;
	try_file(s, path);
	free(path);
	return 0;
}

static int try_build_id(const struct search *s)
{
	const struct dwunw_build_id *id = &s->module->id;
	char hex[2 * DWUNW_MAX_BUILD_ID + 1] = "";
	int err = 0;

	for (size_t i = 0; i < id->len; i++)
		snprintf(hex + 2 * i, 3, "%02x", id->bytes[i]);
	for (size_t i = 0; !err && i < s->dirs->nr && id->len > 1; i++)
		err = try_path(s, "%s/.build-id/%.2s/%s.debug", s->dirs->dir[i], hex, hex + 2);
	return err;
}

/* The file name in .gnu_debuglink, or NULL.  It comes with the image, so it must not lead
 * elsewhere. */
static const char *link_name(Elf *elf)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = dwunw_elf_section(elf, ".gnu_debuglink", &shdr);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;
	const char *name = data ? data->d_buf : NULL;

	if (!name || !data->d_size || !memchr(name, '\0', data->d_size))
		return NULL;
	return *name && !strchr(name, '/') ? name : NULL;
}

static int try_link(const struct search *s)
{
	const char *name = link_name(s->module->elf), *path = s->module->path;
	int dir_len = (int)(strrchr(path, '/') - path), err;

	if (!name)
		return 0;
	err = try_path(s, "%.*s/%s", dir_len, path, name);
	if (!err)
		err = try_path(s, "%.*s/.debug/%s", dir_len, path, name);
	for (size_t i = 0; !err && i < s->dirs->nr; i++)
		err = try_path(s, "%s%.*s/%s", s->dirs->dir[i], dir_len, path, name);
	return err;
}

int dwunw_debugfile_find(struct dwunw_debugfile *out, const struct dwunw_module *module,
			 const struct dwunw_debug_dirs *dirs)
{
	const struct search s = {out, module, dirs};
	int err;

	*out = (struct dwunw_debugfile){.fd = -1};
	if (dwunw_elf_has_debug_info(module->elf))
		out->dwarf = dwarf_begin_elf(module->elf, DWARF_C_READ, NULL);
	if (out->dwarf || !module->id.len)
		return 0;
	err = try_build_id(&s);
	/* Names like [vdso] are no paths. */
	if (err || module->path[0] != '/')
		return err;
	err = try_path(&s, "%s", module->path);
	return err ? err : try_link(&s);
}
