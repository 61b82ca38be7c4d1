/* auxv.c - the program's ELF header, as it lies in memory */
#include "record/target/auxv.h"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_PHDRS 128

/* Where the beginning of the file with inode number @inode is mapped; 0: nowhere. */
static uint64_t start_of(const struct target *t, uint64_t inode)
{
	struct maps maps = {0};
	uint64_t start = 0;

	if (!target_read_maps(t, &maps))
		for (size_t i = 0; i < maps.nr && !start; i++)
			if (maps.v[i].inode == inode && !maps.v[i].offset)
				start = maps.v[i].start;
	maps_release(&maps);
	return start;
}

/* Where the program's interpreter, the dynamic loader, is mapped; 0: it has none. */
static uint64_t loader_of(const struct target *t, uint64_t start, const Elf64_Ehdr *header)
{
	char path[PATH_MAX];
	struct stat st;

	for (unsigned int i = 0; i < header->e_phnum && i < MAX_PHDRS; i++) {
		uint64_t at = start + header->e_phoff + i * sizeof(Elf64_Phdr);
		Elf64_Phdr ph;

		if (target_read_memory(t, at, &ph, sizeof(ph)) || ph.p_type != PT_INTERP ||
		    ph.p_filesz >= sizeof(path))
			continue;
		if (target_read_memory(t, start + ph.p_offset, path, ph.p_filesz))
			return 0;
		path[ph.p_filesz] = '\0';
		return target_stat(t, HELPER_ROOT, path, &st) ? 0 : start_of(t, st.st_ino);
	}
	return 0;
}

uint64_t auxv_guess(const struct target *t, uint64_t type)
{
	Elf64_Ehdr header;
	struct stat st;
	uint64_t start = target_stat(t, HELPER_EXE, "", &st) ? 0 : start_of(t, st.st_ino);

	if (!start || target_read_memory(t, start, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG))
		return 0;
	switch (type) {
	case AT_PHDR:
		return start + header.e_phoff;
	case AT_PHNUM:
		return header.e_phnum;
	case AT_ENTRY:
		return header.e_entry + (header.e_type == ET_DYN ? start : 0);
	case AT_BASE:
		return loader_of(t, start, &header);
	default:
		return 0;
	}
}
