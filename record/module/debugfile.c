/* debugfile.c - by build-id below /usr/lib/debug, or by .gnu_debuglink near the file */
#include "record/module/debugfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/module/elffile.h"

/* The ELF file @path, if it is a regular file with the build-id @id. */
static Elf *open_same(const char *path, const struct mlk_id *id, int *fd)
{
	struct mlk_id found;
	struct stat st;
	Elf *elf = NULL;

	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0)
		return NULL;
	if (!fstat(*fd, &st) && S_ISREG(st.st_mode))
		elf = elffile_open(*fd);
	if (elf) {
		elffile_build_id(elf, &found);
		if (found.len == id->len && !memcmp(found.bytes, id->bytes, id->len))
			return elf;
	}
	elf_end(elf);
	close(*fd);
	*fd = -1;
	return NULL;
}

static Elf *by_build_id(const struct mlk_id *id, int *fd)
{
	char path[sizeof("/usr/lib/debug/.build-id//.debug") + 2 * MLK_MAX_ID];
	int len = snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%02x/", id->bytes[1]);

	for (int i = 2; i < id->len; i++)
		len += snprintf(path + len, sizeof(path) - (size_t)len, "%02x", id->bytes[i]);
	snprintf(path + len, sizeof(path) - (size_t)len, ".debug");
	return open_same(path, id, fd);
}

static Elf *by_link(Elf *elf, const char *path, const struct mlk_id *id, int *fd)
{
	static const char *const places[] = {"%.*s/%s", "%.*s/.debug/%s", "/usr/lib/debug%.*s/%s"};
	Elf_Scn *scn = elffile_section(elf, ".gnu_debuglink");
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	const char *slash = strrchr(path, '/');
	char at[PATH_MAX];
	Elf *found = NULL;

	if (!data || !data->d_buf || !memchr(data->d_buf, 0, data->d_size) || !slash ||
	    strchr(data->d_buf, '/'))
		return NULL;
	for (size_t i = 0; !found && i < sizeof(places) / sizeof(places[0]); i++) {
		int len = snprintf(at, sizeof(at), places[i], (int)(slash - path), path,
				   (const char *)data->d_buf);

		if (len > 0 && (size_t)len < sizeof(at))
			found = open_same(at, id, fd);
	}
	return found;
}

Elf *debugfile_open(Elf *elf, const char *path, int *fd)
{
	struct mlk_id id;
	Elf *found;

	*fd = -1;
	elffile_build_id(elf, &id);
	if (id.len < 2)
		return NULL;
	found = by_build_id(&id, fd);
	return found ? found : by_link(elf, path, &id, fd);
}
