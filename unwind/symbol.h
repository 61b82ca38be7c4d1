/* symbol.h - which function an address is in */
#ifndef DWUNW_SYMBOL_H
#define DWUNW_SYMBOL_H

#include <libelf.h>
#include <stdint.h>

struct dwunw_symtab;

/* The functions of @image; where it has no .symtab, those of @debug's, which may be NULL.  Both are
 * borrowed until dwunw_symtab_free().  Returns 0, or -ENOMEM with *out NULL. */
int dwunw_symtab_new(struct dwunw_symtab **out, Elf *image, Elf *debug);
void dwunw_symtab_free(struct dwunw_symtab *symtab);

/* The function with @addr in it: *name is demangled and valid until dwunw_symtab_free(), or NULL if
 * there is none; *start is its address.  Returns 0 or -ENOMEM. */
int dwunw_symtab_find(struct dwunw_symtab *symtab, uint64_t addr, const char **name,
		      uint64_t *start);

#endif
