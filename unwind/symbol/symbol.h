/* symbol.h - which function an address is in */
#ifndef DWUNW_SYMBOL_H
#define DWUNW_SYMBOL_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwunw_symtab;

/* No functions yet.  Returns 0, or -ENOMEM with *out NULL. */
int dwunw_symtab_new(struct dwunw_symtab **out);
void dwunw_symtab_free(struct dwunw_symtab *symtab);

/* Add the functions of the first section of @elf that has @type, SHT_DYNSYM or SHT_SYMTAB; *found
 * tells whether there is one.  @elf is borrowed until dwunw_symtab_free().  Returns 0 or -ENOMEM.
 */
int dwunw_symtab_add(struct dwunw_symtab *symtab, Elf *elf, uint32_t type, bool *found);

/* Prepare for dwunw_symtab_find(), when all were added.  Returns 0 or -ENOMEM. */
int dwunw_symtab_sort(struct dwunw_symtab *symtab);

/* The function with @addr in it: its name as the file has it, of *len characters, valid until
 * dwunw_symtab_free(), and its address in *start; or NULL. */
const char *dwunw_symtab_find(const struct dwunw_symtab *symtab, uint64_t addr, size_t *len,
			      uint64_t *start);

#endif
