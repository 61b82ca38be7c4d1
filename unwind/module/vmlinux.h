/* vmlinux.h - files with debug information of the kernel and its modules: where they are installed,
 * and what their addresses mean in the image of a trace */
#ifndef DWUNW_VMLINUX_H
#define DWUNW_VMLINUX_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwunw_module;

/* Is @module the kernel itself?  Its own modules are others. */
bool dwunw_is_kernel(const struct dwunw_module *module);

#define DWUNW_VMLINUX_PATHS 4

/* One of so many paths below @dir, number @i from 0, where distributions install the file of the
 * kernel @release; to be freed by the caller.  NULL: out of memory. */
char *dwunw_vmlinux_path(const char *dir, const char *release, size_t i);

/* May @module be one of the kernel's, in a trace of the kernel? */
bool dwunw_is_ko(const struct dwunw_module *module);

#define DWUNW_KO_DIRS 2

/* Look for the file of @module, one of the kernel @release's, in the tree that is number @i, from
 * 0, of so many below @dir; *path is to be freed by the caller, or NULL.  Returns 0 or -ENOMEM. */
int dwunw_ko_find(const struct dwunw_module *module, const char *dir, const char *release, size_t i,
		  char **path);

/* What is added to an address of the kernel's @image to have that of @file: both have _text
 * somewhere.  In an image it is where the code begins. */
uint64_t dwunw_vmlinux_shift(Elf *image, Elf *file);

#endif
