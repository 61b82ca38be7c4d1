/* module.h - one ELF file that was loaded into a process, and what was learned of it */
#ifndef DWUNW_MODULE_H
#define DWUNW_MODULE_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/cfi/cfi.h"
#include "unwind/elf/elf_util.h"
#include "unwind/module/builtins.h"
#include "unwind/module/names.h"

struct dwunw_mapping;

/* A program or library. */
struct dwunw_module {
	char *path;
	Elf *elf; /* of the image that was given */
	struct dwunw_build_id id;
	struct dwunw_cfi *cfi;
	char *debug_file;	     /* of dwunw_debug_file_set(), or NULL */
	struct dwunw_file_mark mark; /* of dwunw_file_state_set(), */
	bool marked;		     /* if it was called */
	struct dwunw_names *names;   /* NULL until a name is requested */
	struct dwunw_builtins builtins;
	void *mapped; /* the image, if it is to be unmapped with the module, or NULL */
	size_t mapped_len;
};

/* Returns 0 with a new module in *out, or -ENOMEM, DWUNW_ERR_ELF, DWUNW_ERR_ARCH and NULL.  @image
 * is borrowed until the module is freed, @path is copied. */
int dwunw_module_new(struct dwunw_module **out, const char *path, const void *image,
		     size_t image_len);

/* The same for @file, if its build-id is @id; also -ENOENT if not.  @path is the module's. */
int dwunw_module_map(struct dwunw_module **out, const char *file, const char *path,
		     const struct dwunw_build_id *id);

/* Release @module; NULL is allowed. */
void dwunw_module_free(struct dwunw_module *module);

/* What is added to an address of the file where the part of it from @map->file_offset on is mapped
 * to @map->start; false when no loadable segment has that part. */
bool dwunw_module_bias(const struct dwunw_module *module, const struct dwunw_mapping *map,
		       uint64_t *bias);

#endif
