/* elf_image.h - what a trace keeps of an ELF file: enough to unwind and to name functions */
#ifndef RECORD_ELF_IMAGE_H
#define RECORD_ELF_IMAGE_H

#include <libelf.h>
#include <stdint.h>

/* How much of a module a trace holds; each level holds what those before it do. */
enum elf_image_embed {
	EMBED_NONE,    /* only which file it was */
	EMBED_UNWIND,  /* unwind tables */
	EMBED_SYMBOLS, /* symbol tables */
	EMBED_DEBUG,   /* what DWARF says of functions and lines */
};

/*
 * Reduce @elf, found at @path, to the image that doc/trace-format.md 4.3 describes.  Where it has
 * no .symtab, that of its debug file is taken: from /usr/lib/debug by build-id, or by
 * .gnu_debuglink next to the file, and only if the build-id is the same.
 *
 * @path is as seen by this process; *image (*len bytes) is freed by the caller.
 * Returns 0, -ENOMEM, -EINVAL (libelf cannot make sense of the file), -EFBIG (the image is
 * larger than this process may make files) or another -errno.
 */
int elf_image_make(Elf *elf, const char *path, enum elf_image_embed embed, uint8_t **image,
		   uint64_t *len);

#endif
