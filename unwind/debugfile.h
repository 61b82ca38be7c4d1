/* debugfile.h - find the file with the debug information of a module */
#ifndef DWUNW_DEBUGFILE_H
#define DWUNW_DEBUGFILE_H

#include <elfutils/libdw.h>
#include <libelf.h>
#include <stddef.h>

struct dwunw_module;

/* Directories like /usr/lib/debug, in the order they are tried. */
struct dwunw_debug_dirs {
	char **dir;
	size_t nr;
};

struct dwunw_debugfile {
	int fd;	      /* -1: no file of its own */
	Elf *elf;     /* of the separate file, or NULL */
	Dwarf *dwarf; /* NULL: none was found */
};

/*
 * Look for the debug information of @module: in its image, by build-id below @dirs, at its path,
 * and by the name it gives in .gnu_debuglink.  A file whose build-id differs is never used, and
 * nothing is fetched over the network.  @out is empty when nothing is found; the image stays
 * borrowed. Returns 0 or -ENOMEM.
 */
int dwunw_debugfile_find(struct dwunw_debugfile *out, const struct dwunw_module *module,
			 const struct dwunw_debug_dirs *dirs);

/* Release what dwunw_debugfile_find() opened. */
void dwunw_debugfile_close(struct dwunw_debugfile *file);

#endif
