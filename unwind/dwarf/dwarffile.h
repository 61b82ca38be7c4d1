/* dwarffile.h - one file with debug information, opened */
#ifndef DWUNW_DWARFFILE_H
#define DWUNW_DWARFFILE_H

#include <elfutils/libdw.h>
#include <libelf.h>
#include <stdbool.h>

#include "unwind/dwarf/decompress.h"
#include "unwind/dwarf/relocated.h"
#include "unwind/elf/elf_util.h"

/* What was opened for it. */
struct dwunw_dwarf_file {
	int fd;	    /* -1: no file of its own */
	char *path; /* of that file, or NULL */
	Elf *elf;   /* of that file, or NULL */
	struct dwunw_expanded expanded;
	struct dwunw_relocated *relocated; /* of a file that was not linked, or NULL */
	Dwarf *dwarf;			   /* NULL: none was found */
};

#define DWUNW_DWARF_FILE_NONE ((struct dwunw_dwarf_file){.fd = -1})

/* Open the debug information of @elf, which is borrowed.  file->dwarf is NULL if it has none.
 * Returns 0, -ENOMEM, -EINVAL when it has some that cannot be read, or -ENOBUFS when that takes
 * more memory than there is, which is no reason to end. */
int dwunw_dwarf_file_borrow(struct dwunw_dwarf_file *file, Elf *elf);

/* What a file must be to be taken: of this build-id, or, if that is empty, with this CRC, or as it
 * was. */
struct dwunw_file_key {
	const struct dwunw_build_id *id;
	const uint32_t *crc;		    /* of all of the file; NULL: that does not count */
	const struct dwunw_file_mark *mark; /* the same */
	bool unlinked; /* one that was not linked is read, too, as file->relocated */
};

/* The same for the file at @path; file->elf is NULL if there is none or it is not the one of
 * @key, file->dwarf also if it is the one and has no debug information. */
int dwunw_dwarf_file_open(struct dwunw_dwarf_file *file, const char *path,
			  const struct dwunw_file_key *key);

/* Close all that is open; then it is DWUNW_DWARF_FILE_NONE. */
void dwunw_dwarf_file_close(struct dwunw_dwarf_file *file);

#endif
