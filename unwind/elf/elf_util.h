/* elf_util.h - the little that libelf does not give directly */
#ifndef DWUNW_ELF_UTIL_H
#define DWUNW_ELF_UTIL_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DWUNW_MAX_BUILD_ID 64

/* What the linker made of all of a file. */
struct dwunw_build_id {
	size_t len; /* 0: none */
	uint8_t bytes[DWUNW_MAX_BUILD_ID];
};

/* The first section of @elf called @name that has contents in the file, with its header in *shdr;
 * or NULL. */
Elf_Scn *dwunw_elf_section(Elf *elf, const char *name, GElf_Shdr *shdr);

/* Whether @elf has sections of debug information (DWARF's DIEs). */
bool dwunw_elf_has_debug_info(Elf *elf);

/* Whether @elf is a program or library, and not what a linker makes them of: sections without
 * addresses. */
bool dwunw_elf_is_linked(Elf *elf);

/* What is known of a file without build-id, as struct dwunw_file_state has it. */
struct dwunw_file_mark {
	uint64_t inode, size, modified, latest_ns;
};

/* The GNU build-id of @elf; id->len is 0 when there is none. */
void dwunw_elf_build_id(Elf *elf, struct dwunw_build_id *id);

/* The path below @dir of the file with @id, to be freed by the caller; NULL: out of memory.  @end
 * is what comes behind the digits. */
char *dwunw_build_id_path(const struct dwunw_build_id *id, const char *dir, const char *end);

/* What printf() would make of the arguments, likewise. */
__attribute__((format(printf, 1, 2))) char *dwunw_path(const char *format, ...);

/* Are both the same, and not empty? */
bool dwunw_build_id_equal(const struct dwunw_build_id *a, const struct dwunw_build_id *b);

/* Do the bytes before the address @addr of the file end in a call instruction?  1, 0, or -1 if they
 * are not in the image. */
int dwunw_code_calls(Elf *elf, uint64_t addr);

/* No ELF file that is larger is read.  Those of kernels with all debug information have 1 GiB. */
#define DWUNW_MAX_FILE ((size_t)1 << 32)

/*
 * Open @path for reading if it is a regular file that is neither empty nor larger than
 * DWUNW_MAX_FILE, and not below /proc, /sys or /dev, be it by symbolic links.  Returns the
 * descriptor, which the caller closes, with the size in *size; or -1.
 */
int dwunw_file_open(const char *path, size_t *size);

#endif
