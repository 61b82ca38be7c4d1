/* go_table.h - where in an ELF file Go's table of functions is */
#ifndef RECORD_GO_TABLE_H
#define RECORD_GO_TABLE_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The name of its section in a trace. */
#define GO_TABLE_SECTION ".gopclntab"

/* The bytes of a table in a file. */
struct go_table {
	const uint8_t *bytes; /* valid until elf_end() */
	size_t len;	      /* to the end of the section that they are in */
	uint64_t text;	      /* the address that its functions count from; 0: not known */
};

/* Find the table of @elf.  A linker may have put it into a larger section, and a file that is
 * position independent has its addresses among the relocations.  False: there is none. */
bool go_table_find(Elf *elf, struct go_table *t);

/* The 8 bytes that a program has at @vaddr when it is loaded, less where it is loaded to: those of
 * the file, or what a relocation makes of them.  0: nothing is there, or it is not known. */
uint64_t go_table_word(Elf *elf, uint64_t vaddr);

#endif
