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
	bool mangled;		  /* names stay as they are found */
	dwunw_debug_fetch *fetch; /* asked last, or NULL */
	void *fetch_arg;
};

/* What was found for a module. */
struct dwunw_debugfile {
	struct dwunw_dwarf_file main;	 /* its dwarf is NULL when none was found */
	struct dwunw_dwarf_file alt;	 /* what dwz moved out of it; may be empty */
	struct dwunw_dwarf_file symbols; /* without main: a file with symbols, or empty */
	uint32_t notes;			 /* enum dwunw_note */
};

/*
 * Look for the debug information of @module: in its image, by build-id below @dirs, at its path
 * and by the name it gives in .gnu_debuglink, both below @dirs->symfs first, and by @dirs->fetch.
 * A file whose build-id differs is never used; for a module without build-id the CRC in
 * .gnu_debuglink must be right. out->main.dwarf is NULL when nothing is found; the image stays
 * borrowed.  Returns 0 or -ENOMEM.
 */
int dwunw_debugfile_find(struct dwunw_debugfile *out, const struct dwunw_module *module,
			 const struct dwunw_debug_dirs *dirs);

/* Release what dwunw_debugfile_find() opened. */
void dwunw_debugfile_close(struct dwunw_debugfile *file);

#endif
