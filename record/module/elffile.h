/* elffile.h - the little that recording reads from ELF files: functions, code, build-id */
#ifndef RECORD_ELFFILE_H
#define RECORD_ELFFILE_H

#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/trace.h"

/* Open the ELF file @fd for reading; the Elf is ended with elf_end(), @fd stays the caller's.
 * NULL: no ELF file of this machine's kind (64-bit x86-64). */
Elf *elffile_open(int fd);

/* A function by its name. */
struct elf_function {
	bool found;
	uint64_t file_offset; /* where its first byte is in the file */
	uint64_t address;     /* the same as the file itself numbers its addresses */
	uint64_t size;	      /* bytes; 0: not told */
};

enum elf_table { ELF_EXPORTED, ELF_ALL }; /* .dynsym; .symtab */

/* Functions that are looked for. */
struct elf_names {
	const char *const *all;
	size_t nr;
	struct elf_function *found; /* of each, all zero at first */
};

/* Look for the functions @names of @elf in a symbol table of @symbols, which is @elf or its debug
 * file; what was found already stays as it is. */
void elffile_functions(Elf *elf, Elf *symbols, enum elf_table table, const struct elf_names *names);

/* All symbols of the tables of @elf that are of @type, SHT_DYNSYM or SHT_SYMTAB, or 0 for both; the
 * rest is zero at first. */
struct elf_symbols {
	Elf *elf;
	GElf_Word type;
	Elf_Scn *scn;
	Elf_Data *data;
	GElf_Shdr sh;
	int next;
	GElf_Sym sym; /* the one at hand */
};

/* Go on to the next symbol, from the first on.  False: there is none. */
bool elffile_next_symbol(struct elf_symbols *s);

/* Its name; NULL: it cannot be read. */
const char *elffile_symbol_name(const struct elf_symbols *s);

/* All words of @elf in which the loader puts the address of a symbol, for code that uses it; the
 * rest is zero at first. */
struct elf_slots {
	Elf *elf;
	Elf_Scn *scn;
	Elf_Data *data;
	GElf_Shdr sh;
	int next;
	uint64_t address; /* of the one at hand, as the file numbers addresses */
	GElf_Sym sym;	  /* of which it is */
	const char *name; /* its; NULL: it cannot be read */
};

/* Go on to the next slot, from the first on.  False: there is none. */
bool elffile_next_slot(struct elf_slots *s);

/* Has it a dynamic loader?  A program that has none is statically linked. */
bool elffile_has_loader(Elf *elf);

/* The first executable segment that holds @file_offset: its *@len bytes, which begin *@start bytes
 * into the file; valid until elf_end().  NULL: it cannot be read, or, with *@len 0, there is none.
 */
const uint8_t *elffile_code(Elf *elf, uint64_t file_offset, uint64_t *start, uint64_t *len);

/* From an offset into the executable segment that holds @file_offset to its address; 0: none. */
uint64_t elffile_bias(Elf *elf, uint64_t file_offset);

/* What the file holds for the address @vaddr: *len bytes, @most at most, valid until elf_end().
 * NULL: nothing. */
const void *elffile_bytes(Elf *elf, uint64_t vaddr, size_t most, size_t *len);

/* The GNU build-id, as a trace's id; its len is 0 when there is none. */
void elffile_build_id(Elf *elf, struct mlk_id *id);

/* The first section named @name; NULL: none. */
Elf_Scn *elffile_section(Elf *elf, const char *name);

/* Open the debug file of @elf, which was found at @path.  Returns its Elf, to be ended by the
 * caller, and its descriptor in *fd, to be closed after that; NULL when there is none with the same
 * build-id. */
Elf *debugfile_open(Elf *elf, const char *path, int *fd);

#endif
