/* decompress.h - compressed debug sections in a form that libdw can read */
#ifndef DWUNW_DECOMPRESS_H
#define DWUNW_DECOMPRESS_H

#include <libelf.h>
#include <stdbool.h>

/* Zeroes make an empty one. */
struct dwunw_expanded {
	Elf *elf; /* NULL: none was needed */
	void *bytes;
};

/* Is there memory to read the debug sections of @elf?  Without, libdw takes sections for missing,
 * or ends the process.  Returns 0, -ENOBUFS when there is not, or -EINVAL as dwunw_decompress(). */
int dwunw_decompress_check(Elf *elf);

/* If debug sections of @elf are compressed by zstd, which libdw before 0.189 cannot read, make an
 * ELF file in memory that has all debug sections of @elf, and those decompressed.  The same is made
 * if @elf is @in_memory and has some compressed by zlib, which stay so: libdw decompresses them,
 * but writes to the image.  Returns 0, -ENOMEM, or -EINVAL when a section is compressed in another
 * way than by zlib or zstd or is damaged, or when the sections that are, by either, expand to more
 * than any real ones. */
int dwunw_decompress(struct dwunw_expanded *out, Elf *elf, bool in_memory);

/* Read the symbol table in .gnu_debugdata of @elf, an ELF file compressed by xz.  What takes more
 * memory than any real one is refused.  Returns 0 (there may be none), -ENOMEM, or -EINVAL when it
 * cannot be read; only after 0 can there be one in *out. */
int dwunw_minidebug_open(struct dwunw_expanded *out, Elf *elf);

/* Release what the functions above made. */
void dwunw_expanded_release(struct dwunw_expanded *expanded);

#endif
