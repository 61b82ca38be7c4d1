/* debugfile.h - find the file with the debug information of a module */
#ifndef DWUNW_DEBUGFILE_H
#define DWUNW_DEBUGFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/dwarf/dwarffile.h"
#include "unwind/dwunw.h"

struct dwunw_module;

/* Directories like /usr/lib/debug, in the order they are tried. */
struct dwunw_debug_dirs {
	char **dir;
	size_t nr, room;
	char *symfs; /* below it files are looked for before they are at their own paths; or NULL */
	char *release;		  /* of the kernel, or NULL */
	bool mangled;		  /* names stay as they are found */
	dwunw_debug_fetch *fetch; /* asked last, or NULL */
	void *fetch_arg;
};

/* What was found for a module. */
struct dwunw_debugfile {
	struct dwunw_dwarf_file main;	 /* its dwarf is NULL when none was found */
	struct dwunw_dwarf_file alt;	 /* what dwz moved out of it; may be empty */
	struct dwunw_dwarf_file symbols; /* without main: a file with symbols, or empty */
	uint64_t shift; /* added to an address of the image, to have that of main or symbols */
	uint32_t notes; /* enum dwunw_note */
};

/*
 * Look for the debug information of @module: in its image, in the file of dwunw_debug_file_set(),
 * by build-id below @dirs, at its path and by the name it gives in .gnu_debuglink, both below
 * @dirs->symfs first, and by @dirs->fetch; that of the kernel and its modules also by the release.
 * A file whose build-id differs is never used, nor one that was not linked, but for a module of the
 * kernel; for a module without build-id the CRC in .gnu_debuglink must be right, or the file at its
 * path be as dwunw_file_state_set() said. out->main.dwarf is NULL when nothing is found; the image
 * stays borrowed.  Returns 0 or -ENOMEM.
 */
int dwunw_debugfile_find(struct dwunw_debugfile *out, const struct dwunw_module *module,
			 const struct dwunw_debug_dirs *dirs);

/* Can @module have its debug information from the file at @path?  Returns 0, -ENOMEM, -ENOENT (no
 * regular file that can be opened), DWUNW_ERR_ELF (nor one that was linked), DWUNW_ERR_OTHER or
 * DWUNW_ERR_NO_DEBUG. */
int dwunw_debugfile_check(const char *path, const struct dwunw_module *module);

/* Release what dwunw_debugfile_find() opened. */
void dwunw_debugfile_close(struct dwunw_debugfile *file);

#endif
