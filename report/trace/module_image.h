/* module_image.h - what the ELF image of a module says of its memory; nothing of an image is
 * believed before it was checked */
#ifndef REPORT_MODULE_IMAGE_H
#define REPORT_MODULE_IMAGE_H

#include <elf.h>

#include "report/trace/trace_modules.h"

/* The modules of a trace that have whole images, by path. */
struct module_paths {
	const struct trace_module **all; /* borrowed */
	size_t nr;
};

/* Sort those of @images, which must not change meanwhile.  @paths is to be released in any case.
 * Returns 0 or -ENOMEM. */
int module_paths_init(struct module_paths *paths, const struct trace_modules *images);

/* The image of the file @path; NULL: there is none. */
const struct trace_module *module_paths_find(const struct module_paths *paths, const char *path);

/* Forget them. */
void module_paths_release(struct module_paths *paths);

/* Copy the @i-th of the headers of @size bytes at @offset of @image to @to.  False: it is not
 * there. */
bool module_copy(const struct trace_module *image, uint64_t offset, size_t i, size_t size,
		 void *to);

/* Copy the header of a 64-bit ELF file.  False: it is none. */
bool module_header(const struct trace_module *image, Elf64_Ehdr *header);

/* Copy program header @i.  False: there is none, or it is not looked at. */
bool module_segment(const struct trace_module *image, size_t i, Elf64_Phdr *segment);

/* How many bytes of pages the loader maps behind the writable pages of the file, for .bss (ELF
 * gABI, program loading: p_memsz beyond p_filesz). */
uint64_t module_zeroed(const struct trace_module *image);

/* A symbol of an image, and the file of its source where it is local to that; else NULL. */
struct module_symbol {
	const Elf64_Sym *symbol;
	const char *name, *file; /* in the image */
};

/* Call @visit with @arg for each symbol of @image that has a name.  Returns 0, or what @visit
 * returned other than that, which ends it. */
int module_each_symbol(const struct trace_module *image,
		       int (*visit)(void *arg, const struct module_symbol *symbol), void *arg);

#endif
