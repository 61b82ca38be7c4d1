/* dwunw_module.h - part of dwunw.h: the programs and libraries, and where they are mapped */
#ifndef DWUNW_PART_MODULE_H
#define DWUNW_PART_MODULE_H

#include <stddef.h>
#include <stdint.h>

struct dwunw;
struct dwunw_space; /* opaque: one epoch of one address space (which module is mapped where) */

#ifdef __cplusplus
extern "C" {
#endif

#define DWUNW_NO_MODULE UINT32_MAX

/* Numbers from this one to DWUNW_NO_MODULE - 1 are the caller's own, for files that the unwinder
 * does not have: frames in their mappings get the number as it is, and as addr the offset into the
 * file. */
#define DWUNW_FOREIGN_MODULE ((uint32_t)1 << 31)

/*
 * Add the program or library that was loaded from @path.
 *
 * @image: @image_len bytes of an ELF file; either the whole file or one that was reduced to its
 *         headers and the sections .eh_frame, .eh_frame_hdr, .debug_frame and symbol tables, with
 * the program headers as they were in the whole file.  Borrowed until dwunw_free().
 * @path:  copied; used to find the file again for line numbers, and only if its build-id is the
 * same; see also dwunw_file_state_set().
 *
 * On success *module is its number (from 0, in order of addition).
 * Returns 0, -ENOMEM, DWUNW_ERR_ELF or DWUNW_ERR_ARCH.
 */
int dwunw_module_add(struct dwunw *dw, uint32_t *module, const char *path, const void *image,
		     size_t image_len);

/*
 * Add the file at @path itself, for a trace that does not hold what it needs of it; or, if it is
 * not there, the file with its build-id below the directories of dwunw_debug_dir_add().  A debug
 * file there gives names and lines, but mostly nothing to unwind by.  Only a regular file of 4 GiB
 * at most, not below /proc, /sys or /dev, whose GNU build-id is the @build_id_len bytes at
 * @build_id, is taken; it is mapped, and must not be cut short, until dwunw_free().
 *
 * @path: absolute; copied.
 *
 * On success *module is its number as for dwunw_module_add(), else DWUNW_NO_MODULE.
 * Returns 0, -ENOMEM, -ENOENT (no such file, or one with another build-id or none), DWUNW_ERR_ELF
 * or DWUNW_ERR_ARCH.
 */
int dwunw_module_open(struct dwunw *dw, uint32_t *module, const char *path, const uint8_t *build_id,
		      size_t build_id_len);

/* The path of the Linux kernel's own image, as others call it.  Its first executable segment begins
 * at the kernel's symbol _text, wherever that is in its file with debug information (vmlinux). */
#define DWUNW_KERNEL_PATH "[kernel]"

/* Path of @module as it was added; valid until dwunw_free().  NULL for DWUNW_NO_MODULE. */
const char *dwunw_module_path(const struct dwunw *dw, uint32_t module);

/* The contents of the section of @module that is called @name, *len bytes; valid until
 * dwunw_free().  NULL: it has none. */
const void *dwunw_module_section(const struct dwunw *dw, uint32_t module, const char *name,
				 size_t *len);

/* Bits of dwunw_mapping.flags. */
enum dwunw_mapping_flag {
	/* Code that the process generated, as a runtime compiles it: there is no call frame
	 * information.  No place in it is told: its frames have no module, the pc and the addr 0,
	 * and of several in a row there is one.  So it is with what V8 has in its file. */
	DWUNW_MAPPING_GENERATED = 1 << 0,
	/* and it is one function of it, which the module's number tells: each frame is there */
	DWUNW_MAPPING_FUNCTION = 1 << 1,
};

/* In the flags of a function: how many bytes its frame has below the return address, with rbp saved
 * in the uppermost ones.  0: it keeps a frame pointer. */
#define DWUNW_MAPPING_SIZE_SHIFT 8
#define DWUNW_MAPPING_SIZE_MAX	 ((1u << 24) - 1)

/* One executable mapping, as /proc/PID/maps has it. */
struct dwunw_mapping {
	uint64_t start;	      /* first address */
	uint64_t end;	      /* first address after it */
	uint64_t file_offset; /* bytes into the file, of the page at start */
	uint32_t module;      /* number of the module, a foreign one, or DWUNW_NO_MODULE */
	uint32_t flags;	      /* enum dwunw_mapping_flag */
};

/*
 * Make an epoch of an address space from its executable mappings (in any order; where two overlap,
 * the later in the array wins).  @maps is copied.  @dw must outlive the space, which
 * keeps what was learned of its code: make one for each layout, not for each stack.
 * Returns 0, -ENOMEM or -EINVAL (a mapping that ends before it starts, or an unknown module).
 */
int dwunw_space_new(struct dwunw_space **out, struct dwunw *dw, const struct dwunw_mapping *maps,
		    size_t nr_maps);

/* Release @space; NULL is allowed.  The modules stay. */
void dwunw_space_free(struct dwunw_space *space);

#ifdef __cplusplus
}
#endif

#endif
