/* auxv.c - the program's ELF header, as it lies in memory */
#include "record/auxv.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_PHDRS 128

/* Where the beginning of the file @path is mapped; 0: nowhere. */
static uint64_t start_of(const struct target *t, const char *path)
{
	struct maps maps = {0};
	uint64_t start = 0;
	struct stat st;

	if (!stat(path, &st) && !maps_read(&maps, t->task))
		for (size_t i = 0; i < maps.nr && !start; i++)
			if (maps.v[i].inode == st.st_ino && !maps.v[i].offset)
				start = maps.v[i].start;
	maps_release(&maps);
	return start;
}

/* Where the program's interpreter, the dynamic loader, is mapped; 0: it has none. */
static uint64_t loader_of(const struct target *t, uint64_t start, const Elf64_Ehdr *header)
{
	char path[PATH_MAX];
	int root = snprintf(path, sizeof(path), "/proc/%d/root", (int)t->task);
	size_t room = sizeof(path) - 1 - (size_t)root;

	for (unsigned int i = 0; i < header->e_phnum && i < MAX_PHDRS; i++) {
		uint64_t at = start + header->e_phoff + i * sizeof(Elf64_Phdr);
		Elf64_Phdr ph;

		if (target_read_memory(t, at, &ph, sizeof(ph)) || ph.p_type != PT_INTERP ||
		    ph.p_filesz > room)
			continue;
		if (target_read_memory(t, start + ph.p_offset, path + root, ph.p_filesz))
			return 0;
		path[(size_t)root + ph.p_filesz] = '\0';
		return start_of(t, path);
	}
	return 0;
}

uint64_t auxv_guess(const struct target *t, uint64_t type)
{
	Elf64_Ehdr header;
	char path[64];
	uint64_t start;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)t->task);
	start = start_of(t, path);
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
