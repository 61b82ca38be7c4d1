/* modules.c - from a mapping to a module's id and image */
#include "record/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/elffile.h"
#include "record/module.h"

struct known_file {
	uint32_t dev_major, dev_minor;
	uint64_t inode;
	struct mlk_id id;
};

static const struct known_file *find(const struct modules *ms, const struct mlk_mapping *m)
{
	for (size_t i = 0; i < ms->nr; i++) {
		const struct known_file *f = &ms->files[i];

		if (f->inode == m->inode && f->dev_major == m->dev_major &&
		    f->dev_minor == m->dev_minor)
			return f;
	}
	return NULL;
}

static bool has_id(const struct modules *ms, const struct mlk_id *id)
{
	for (size_t i = 0; i < ms->nr; i++)
		if (ms->files[i].id.len == id->len &&
		    !memcmp(ms->files[i].id.bytes, id->bytes, id->len))
			return true;
	return false;
}

static int remember(struct modules *ms, const struct mlk_mapping *m)
{
	struct known_file *files;

	if (ms->nr == ms->room) {
		size_t room = ms->room ? ms->room * 2 : 32;

		files = realloc(ms->files, room * sizeof(*files));
		if (!files)
			return -ENOMEM;
		ms->files = files;
		ms->room = room;
	}
	ms->files[ms->nr++] = (struct known_file){.dev_major = m->dev_major,
						  .dev_minor = m->dev_minor,
						  .inode = m->inode,
						  .id = m->id};
	return 0;
}

static void put_u64(uint8_t *to, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

/* The id of a file without build-id: what the file system says of it.  @st may be NULL. */
static void file_id(struct mlk_id *id, const struct mlk_mapping *m, const struct stat *st)
{
	uint64_t dev = (uint64_t)m->dev_major << 32 | m->dev_minor;

	/* 31 bytes are left behind the kind: the time's last byte is always 0. */
	uint8_t bytes[32];

	put_u64(bytes, dev);
	put_u64(bytes + 8, m->inode);
	put_u64(bytes + 16, st ? (uint64_t)st->st_size : 0);
	put_u64(bytes + 24, st ? (uint64_t)st->st_mtime : 0);
	id->len = MLK_MAX_ID;
	id->bytes[0] = MLK_ID_FILE;
	memcpy(id->bytes + 1, bytes, MLK_MAX_ID - 1);
}

/* Read the file behind @m: its id, and its image if the module is new. */
static int add_file(struct modules *ms, const struct target *t, struct mlk_writer *w,
		    struct mlk_mapping *m)
{
	int fd = target_open_mapped(t, m), err = 0;
	Elf *elf = fd >= 0 ? elffile_open(fd) : NULL;
	uint8_t *image = NULL;
	uint64_t len = 0;
	char path[PATH_MAX + 64];
	struct stat st;

	if (elf)
		elffile_build_id(elf, &m->id);
	if (!m->id.len)
		file_id(&m->id, m, fd >= 0 && !fstat(fd, &st) ? &st : NULL);
	if (!has_id(ms, &m->id)) {
		target_path(t, m, path, sizeof(path));
		if (!elf || module_image(elf, path, &image, &len) || len > MLK_MAX_IMAGE) {
			ms->unreadable++;
			len = 0;
		}
		err = mlk_writer_module(w, &m->id, m->path, image, len);
	}
	free(image);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return err;
}

static ssize_t read_memory(pid_t pid, uint64_t addr, void *to, size_t len)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = pread(fd, to, len, (off_t)addr);
	close(fd);
	return n;
}

/* The vdso is a whole ELF file in memory, of a page or four. */
static int add_vdso(struct modules *ms, const struct target *t, struct mlk_writer *w,
		    struct mlk_mapping *m)
{
	size_t len = (size_t)(m->end - m->start);
	char *image = len <= 1 << 20 ? malloc(len) : NULL;
	Elf *elf = NULL;
	int err = 0;

	if (image && read_memory(t->pid, m->start, image, len) == (ssize_t)len) {
		elf_version(EV_CURRENT);
		elf = elf_memory(image, len);
	}
	if (elf)
		elffile_build_id(elf, &m->id);
	if (!m->id.len)
		ms->unreadable++;
	else if (!has_id(ms, &m->id))
		err = mlk_writer_module(w, &m->id, m->path, (uint8_t *)image, len);
	elf_end(elf);
	free(image);
	return err;
}

int modules_identify(struct modules *ms, const struct target *t, struct mlk_writer *w,
		     struct mlk_mapping *m)
{
	const struct known_file *known;
	int err;

	memset(&m->id, 0, sizeof(m->id));
	if (!m->inode && strcmp(m->path, "[vdso]"))
		return 0;
	known = find(ms, m);
	if (known) {
		m->id = known->id;
		return 0;
	}
	err = m->inode ? add_file(ms, t, w, m) : add_vdso(ms, t, w, m);
	return err ? err : remember(ms, m);
}

void modules_release(struct modules *ms)
{
	free(ms->files);
	memset(ms, 0, sizeof(*ms));
}
