/* filesearch.c - see filesearch.h */
#include "unwind/module/filesearch.h"

#include <errno.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool has_symbols(Elf *elf)
{
	GElf_Shdr shdr;

	return dwunw_elf_section(elf, ".symtab", &shdr) && shdr.sh_type == SHT_SYMTAB;
}

static int try_path(struct dwunw_file_search *s, const char *path)
{
	struct dwunw_dwarf_file file;
	int err = dwunw_dwarf_file_open(&file, path, &s->key);

	if (file.dwarf)
		*s->out = file;
	else if (file.elf && s->symbols && !s->symbols->elf && has_symbols(file.elf))
		*s->symbols = file;
	else
		dwunw_dwarf_file_close(&file);
	if (err == -EINVAL)
		s->unreadable = true;
	return err == -EINVAL ? 0 : err;
}

int dwunw_file_try(struct dwunw_file_search *s, const char *format, ...)
{
	va_list args;
	char *path;
	int len, err;

	if (s->out->dwarf)
		return 0;
	va_start(args, format);
	len = vasprintf(&path, format, args);
	va_end(args);
	if (len < 0)
		return -ENOMEM;
	err = try_path(s, path);
	free(path);
	return err;
}

/* What comes after the first two digits of a build-id: debug files, as distributions have them; the
 * files themselves, as links; and both in the cache of perf-buildid-cache(1). */
static int try_build_id_below(struct dwunw_file_search *s, const char *dir, const char *hex)
{
	static const char *const ends[] = {".debug", "", "/debug", "/elf"};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(ends) / sizeof(ends[0]); i++)
		err = dwunw_file_try(s, "%s/.build-id/%.2s/%s%s", dir, hex, hex + 2, ends[i]);
	return err;
}

int dwunw_file_try_build_id(struct dwunw_file_search *s)
{
	const struct dwunw_build_id *id = s->key.id;
	char hex[2 * DWUNW_MAX_BUILD_ID + 1] = "";
	int err = 0;

	for (size_t i = 0; i < id->len; i++)
		snprintf(hex + 2 * i, 3, "%02x", id->bytes[i]);
	for (size_t i = 0; !err && i < s->dirs->nr && id->len > 1; i++)
		err = try_build_id_below(s, s->dirs->dir[i], hex);
	return err;
}

int dwunw_file_try_fetch(struct dwunw_file_search *s)
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
