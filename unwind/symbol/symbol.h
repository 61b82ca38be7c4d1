/* symbol.h - which function an address is in */
#ifndef DWUNW_SYMBOL_H
#define DWUNW_SYMBOL_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/ranges.h"

struct dwunw_function;

/* The functions of a module.  Zeroes make an empty one. */
struct dwunw_symtab {
	struct dwunw_function *functions;
	size_t nr, room;
	struct dwunw_ranges ranges; /* item: number of the function */
	uint64_t shift;		    /* subtracted from addresses of what is added next */
};

/* Release what was added. */
void dwunw_symtab_release(struct dwunw_symtab *symtab);

/* Add the functions of the first section of @elf that has @type, SHT_DYNSYM or SHT_SYMTAB; *found
 * tells whether there are any.  @elf is borrowed until dwunw_symtab_release().  Returns 0 or
 * -ENOMEM.
 */
int dwunw_symtab_add(struct dwunw_symtab *symtab, Elf *elf, uint32_t type, bool *found);

/* Prepare for dwunw_symtab_find(), when all were added.  Returns 0 or -ENOMEM. */
int dwunw_symtab_sort(struct dwunw_symtab *symtab);

/* The function with @addr in it: its name as the file has it, of *len characters, valid until
 * dwunw_symtab_release(), and its address in *start; or NULL. */
const char *dwunw_symtab_find(const struct dwunw_symtab *symtab, uint64_t addr, size_t *len,
			      uint64_t *start);

#endif
