/* debugfile.h - find the separate debug file of an ELF file, for its symbol table */
#ifndef RECORD_DEBUGFILE_H
#define RECORD_DEBUGFILE_H

#include <libelf.h>

/* Open the debug file of @elf, which was found at @path.  Returns its Elf, to be ended by the
 * caller, and its descriptor in *fd, to be closed after that; NULL when there is none with the same
 * build-id. */
Elf *debugfile_open(Elf *elf, const char *path, int *fd);

#endif
