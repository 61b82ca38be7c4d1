/* dwarffile.c - see dwarffile.h */
#include "unwind/dwarf/dwarffile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "unwind/elf/elf_util.h"

#define CRC_STEP 65536

static int read_dwarf(struct dwunw_dwarf_file *file, Elf *elf, bool in_memory)
{
	int err;

	*file = DWUNW_DWARF_FILE_NONE;
	if (!dwunw_elf_has_debug_info(elf))
		return 0;
	err = dwunw_decompress_check(elf);
	if (!err)
		err = dwunw_decompress(&file->expanded, elf, in_memory);
	if (err)
		return err;
	file->dwarf =
		dwarf_begin_elf(file->expanded.elf ? file->expanded.elf : elf, DWARF_C_READ, NULL);
	if (file->dwarf)
		return 0;
	dwunw_dwarf_file_close(file);
	return -EINVAL;
}

int dwunw_dwarf_file_borrow(struct dwunw_dwarf_file *file, Elf *elf)
{
	return read_dwarf(file, elf, true);
}

static int read_relocated(struct dwunw_dwarf_file *file, Elf *elf, int fd)
{
	int err;

	*file = DWUNW_DWARF_FILE_NONE;
	if (!dwunw_elf_has_debug_info(elf))
		return 0;
	err = dwunw_decompress_check(elf);
	if (!err)
		err = dwunw_relocated_new(&file->relocated, fd);
	if (!err)
		file->dwarf = dwunw_relocated_dwarf(file->relocated);
	return err;
}

/* The CRC-32 of all that @fd holds, as .gnu_debuglink counts it. */
static bool has_crc(int fd, uint32_t crc)
{
	uint8_t *bytes = malloc(CRC_STEP);
	uLong sum = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t len = -1;

	while (bytes && (len = pread(fd, bytes, CRC_STEP, at)) > 0) {
		sum = crc32(sum, bytes, (uInt)len);
		at += len;
	}
	free(bytes);
	return !len && sum == crc;
}

static bool is_as_it_was(int fd, const struct dwunw_file_mark *mark)
{
	struct stat st;

	/* Where file systems lie on others, the device is not the one that a mapping has. */
	return !fstat(fd, &st) && st.st_ino == mark->inode && (uint64_t)st.st_size == mark->size &&
	       (uint64_t)st.st_mtim.tv_sec == mark->modified &&
	       (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec <=
		       mark->latest_ns;
}

static bool fits(int fd, Elf *elf, const struct dwunw_file_key *key)
{
	struct dwunw_build_id id;

	if (elf_kind(elf) != ELF_K_ELF)
		return false;
	dwunw_elf_build_id(elf, &id);
	if (key->id->len)
		return dwunw_build_id_equal(&id, key->id);
	if (key->mark && !id.len && is_as_it_was(fd, key->mark))
		return true;
	return key->crc && has_crc(fd, *key->crc);
}

int dwunw_dwarf_file_open(struct dwunw_dwarf_file *file, const char *path,
			  const struct dwunw_file_key *key)
{
	size_t size;
	int fd = dwunw_file_open(path, &size), err = -ENOMEM;
	char *copy = NULL;
	Elf *elf = NULL;

	*file = DWUNW_DWARF_FILE_NONE;
	if (fd < 0)
		return 0;
	copy = strdup(path);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!copy)
		goto out;
	err = 0;
	if (!elf || !fits(fd, elf, key))
		goto out;
	err = key->unlinked && !dwunw_elf_is_linked(elf) ? read_relocated(file, elf, fd)
							 : read_dwarf(file, elf, false);
	if (err)
		goto out;
	file->fd = fd;
	file->path = copy;
	file->elf = elf;
	return 0;
out:
	elf_end(elf);
	close(fd);
	free(copy);
	return err;
}

void dwunw_dwarf_file_close(struct dwunw_dwarf_file *file)
{
	if (file->relocated)
		dwunw_relocated_free(file->relocated);
	else
		dwarf_end(file->dwarf);
	dwunw_expanded_release(&file->expanded);
	elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	*file = DWUNW_DWARF_FILE_NONE;
}
