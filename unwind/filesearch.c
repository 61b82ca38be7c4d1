/* filesearch.c - see filesearch.h */
#include "unwind/filesearch.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int try_path(struct dwunw_file_search *s, const char *path)
{
	int err = dwunw_dwarf_file_open(s->out, path, &s->key);

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

int dwunw_file_try_build_id(struct dwunw_file_search *s)
{
	const struct dwunw_build_id *id = s->key.id;
	char hex[2 * DWUNW_MAX_BUILD_ID + 1] = "";
	int err = 0;

	for (size_t i = 0; i < id->len; i++)
		snprintf(hex + 2 * i, 3, "%02x", id->bytes[i]);
	for (size_t i = 0; !err && i < s->dirs->nr && id->len > 1; i++)
		err = dwunw_file_try(s, "%s/.build-id/%.2s/%s.debug", s->dirs->dir[i], hex,
				     hex + 2);
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
