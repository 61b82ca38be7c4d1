/* module_table.c - from a mapping to a module's id and image */
#include "record/module/module_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"

/* A file is known by more than its inode, whose number may be given to another file. */
struct known_file {
	uint32_t dev_major, dev_minor;
	uint64_t inode;
	off_t size; /* size and time are 0 when it could not be opened */
	struct timespec mtime;
	struct mlk_id id;
};

static const struct known_file *find(const struct module_table *ms, const struct mlk_mapping *m,
				     const struct stat *st)
{
	for (size_t i = 0; i < ms->nr; i++) {
		const struct known_file *f = &ms->files[i];

		if (f->inode == m->inode && f->dev_major == m->dev_major &&
		    f->dev_minor == m->dev_minor && f->size == st->st_size &&
		    f->mtime.tv_sec == st->st_mtim.tv_sec &&
		    f->mtime.tv_nsec == st->st_mtim.tv_nsec)
			return f;
	}
	return NULL;
}

static bool has_id(const struct module_table *ms, const struct mlk_id *id)
{
	for (size_t i = 0; i < ms->nr; i++)
		if (ms->files[i].id.len == id->len &&
		    !memcmp(ms->files[i].id.bytes, id->bytes, id->len))
			return true;
	return false;
}

static int remember(struct module_table *ms, const struct mlk_mapping *m, const struct stat *st)
{
	if (grow_array(&ms->files, ms->nr, &ms->room, sizeof(*ms->files)))
		return -ENOMEM;
	ms->files[ms->nr++] = (struct known_file){.dev_major = m->dev_major,
						  .dev_minor = m->dev_minor,
						  .inode = m->inode,
						  .size = st->st_size,
						  .mtime = st->st_mtim,
						  .id = m->id};
	return 0;
}

static void put_u64(uint8_t *to, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

/* The id of a file without build-id: what the file system says of it. */
static void file_id(struct mlk_id *id, const struct mlk_mapping *m, const struct stat *st)
{
	uint64_t dev = (uint64_t)m->dev_major << 32 | m->dev_minor;

	/* 31 bytes are left behind the kind: the time's last byte is always 0. */
	uint8_t bytes[32];

	put_u64(bytes, dev);
	put_u64(bytes + 8, m->inode);
	put_u64(bytes + 16, (uint64_t)st->st_size);
	put_u64(bytes + 24, (uint64_t)st->st_mtim.tv_sec);
	id->len = MLK_MAX_ID;
	id->bytes[0] = MLK_ID_FILE;
	memcpy(id->bytes + 1, bytes, MLK_MAX_ID - 1);
}

/* What is behind a mapping. */
struct mapped_file {
	int fd; /* -1: it could not be opened */
	struct stat st;
};

/* Does a runtime compile code into the file behind @m, which is no library?  Erlang and .NET map
 * such a file twice, to write and to execute it; the first for a moment only, to see whether they
 * may. */
static bool is_generated(const struct mlk_mapping *m)
{
	return !strncmp(m->path, "/memfd:", strlen("/memfd:"));
}

/* Is @file no ELF file at all?  Runtimes of Lisp and Forth map files of their own formats.  Nothing
 * is lost: there is nothing to read. */
static bool is_other(const struct mapped_file *file)
{
	char magic[SELFMAG];

	return file->fd >= 0 && pread(file->fd, magic, SELFMAG, 0) == SELFMAG &&
	       memcmp(magic, ELFMAG, SELFMAG) != 0;
}

/* Read @file behind @m: its id, and its image if that is new.  Generated code has neither. */
static int add_file(struct module_table *ms, const struct target *t, struct mlk_writer *w,
		    struct mlk_mapping *m, const struct mapped_file *file)
{
	Elf *elf = file->fd >= 0 ? elffile_open(file->fd) : NULL;
	uint8_t *image = NULL;
	uint64_t len = 0;
	char path[PATH_MAX + 64];
	int err = 0;

	if (!elf && is_generated(m))
		return 0;
	if (elf)
		elffile_build_id(elf, &m->id);
	if (!m->id.len)
		file_id(&m->id, m, &file->st);
	if (!has_id(ms, &m->id)) {
		target_path(t, m, path, sizeof(path));
		if (ms->embed != EMBED_NONE)
			err = elf ? elf_image_make(elf, path, ms->embed, &image, &len) : -EINVAL;
		if (err || len > MLK_MAX_IMAGE) {
			ms->unreadable += !is_other(file);
			ms->too_large += err == -EFBIG;
			len = 0;
		}
		err = mlk_writer_module(w, &m->id, m->path, image, len);
	}
	free(image);
	elf_end(elf);
	return err;
}

/* Copy the vdso's @len bytes to @image: it is the same in all processes.  Returns 0 or an error. */
static int read_vdso(struct module_table *ms, const struct target *t, uint64_t addr, char *image,
		     size_t len)
{
	int err = target_read_memory(t, addr, image, len);

	if (err && ms->vdso && ms->vdso_len == len) {
		memcpy(image, ms->vdso, len);
		return 0;
	}
	if (!err && !ms->vdso && (ms->vdso = malloc(len)) != NULL) {
		memcpy(ms->vdso, image, len);
		ms->vdso_len = len;
	}
	return err;
}

/* The vdso is a whole ELF file in memory, of a page or four. */
static int add_vdso(struct module_table *ms, const struct target *t, struct mlk_writer *w,
		    struct mlk_mapping *m)
{
	size_t len = (size_t)(m->end - m->start);
	char *image = len <= 1 << 20 ? malloc(len) : NULL;
	Elf *elf = NULL;
	int err = 0;

	if (image && !read_vdso(ms, t, m->start, image, len)) {
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

int module_table_identify(struct module_table *ms, const struct target *t, struct mlk_writer *w,
			  struct mlk_mapping *m)
{
	const struct known_file *known;
	struct mapped_file file = {.fd = -1};
	int err;

	memset(&m->id, 0, sizeof(m->id));
	if (!m->inode && strcmp(m->path, "[vdso]"))
		return 0;
	if (m->inode)
		file.fd = target_open_mapped(t, m);
	if (file.fd >= 0 && fstat(file.fd, &file.st))
		memset(&file.st, 0, sizeof(file.st));
	known = find(ms, m, &file.st);
	if (known) {
		m->id = known->id;
		err = 0;
	} else {
		err = m->inode ? add_file(ms, t, w, m, &file) : add_vdso(ms, t, w, m);
		if (!err)
			err = remember(ms, m, &file.st);
	}
	if (file.fd >= 0)
		close(file.fd);
	return err;
}

void module_table_begin_trace(struct module_table *ms)
{
	ms->nr = 0;
}

void module_table_release(struct module_table *ms)
{
	free(ms->files);
	free(ms->vdso);
	memset(ms, 0, sizeof(*ms));
}

void module_functions(const struct target *t, const struct mlk_mapping *m, enum elf_table table,
		      const struct elf_names *names)
{
	int fd = target_open_mapped(t, m);
	Elf *elf = fd < 0 ? NULL : elffile_open(fd);

	if (elf)
		elffile_functions(elf, elf, table, names);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
}
