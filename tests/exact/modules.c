/* modules.c - see modules.h */
#include "tests/exact/modules.h"

#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/module/elf_image.h"
#include "record/module/elffile.h"

void exact_modules_init(struct exact_modules *m, bool reduced)
{
	memset(m, 0, sizeof(*m));
	m->reduced = reduced;
	if (dwunw_new(&m->dw))
		errx(2, "out of memory");
}

static const void *map_file(int fd, size_t *len)
{
	struct stat st;
	void *image;

	if (fstat(fd, &st) || !st.st_size)
		return NULL;
	image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	*len = (size_t)st.st_size;
	return image == MAP_FAILED ? NULL : image;
}

static const void *reduce_file(int fd, const char *path, size_t *len)
{
	Elf *elf = elffile_open(fd);
	uint8_t *image = NULL;
	uint64_t reduced_len = 0;

	if (elf && elf_image_make(elf, path, EMBED_UNWIND, &image, &reduced_len))
		errx(2, "cannot reduce '%s'", path);
	if (elf)
		elf_end(elf);
	*len = reduced_len;
	return image;
}

static const void *load(const struct exact_modules *m, const char *path, size_t *len)
{
	const void *image;
	int fd;

	if (!strcmp(path, "[vdso]")) {
		*len = m->vdso_len;
		return m->vdso;
	}
	fd = path[0] == '/' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return NULL;
	image = m->reduced ? reduce_file(fd, path, len) : map_file(fd, len);
	close(fd);
	return image;
}

static uint32_t module_number(struct exact_modules *m, const char *path)
{
	uint32_t number;
	size_t len = 0;
	const void *image;

	for (number = 0; number < m->nr; number++)
		if (!strcmp(m->path[number], path))
			return number;
	image = load(m, path, &len);
	if (!image || dwunw_module_add(m->dw, &number, path, image, len))
		return DWUNW_NO_MODULE; /* no file, or no ELF file: code made at run time */
	if (number != m->nr || m->nr == EXACT_MAX_MODULES)
		errx(2, "module %" PRIu32 " of %" PRIu32, number, m->nr);
	m->path[m->nr++] = strdup(path);
	return number;
}

static void take_line(struct exact_modules *m, const char *line)
{
	struct dwunw_mapping map = {0};
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &map.start, &map.end,
		   &map.file_offset, &path) < 3 ||
	    !path)
		return;
	if (m->nr_maps == EXACT_MAX_MAPS)
		errx(2, "more than %d mappings", EXACT_MAX_MAPS);
	map.module = module_number(m, line + path);
	m->maps[m->nr_maps++] = map;
}

struct dwunw_space *exact_modules_space(struct exact_modules *m, const char *text, size_t len)
{
	char *copy = strndup(text, len), *rest = copy, *line;
	struct dwunw_space *space;

	m->nr_maps = 0;
	while ((line = strsep(&rest, "\n")) != NULL)
		take_line(m, line);
	free(copy);
	if (dwunw_space_new(&space, m->dw, m->maps, m->nr_maps))
		errx(2, "the unwinder refuses the mappings");
	return space;
}

void exact_modules_place(const struct exact_modules *m, uint64_t pc, char *out, size_t room)
{
	for (size_t i = 0; i < m->nr_maps; i++) {
		const struct dwunw_mapping *map = &m->maps[i];
		const char *path;

		if (pc < map->start || pc >= map->end)
			continue;
		path = map->module == DWUNW_NO_MODULE ? "?" : m->path[map->module];
		snprintf(out, room, "%s+0x%" PRIx64, path, pc - map->start + map->file_offset);
		return;
	}
	snprintf(out, room, "no code at 0x%" PRIx64, pc);
}
