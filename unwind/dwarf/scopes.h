/* scopes.h - which function of the source an address is in, and what was inlined there */
#ifndef DWUNW_SCOPES_H
#define DWUNW_SCOPES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* Calls inlined into each other that are followed. */
#define DWUNW_MAX_INLINED 64

struct dwunw_scopes;

/* @dwarf is borrowed until dwunw_scopes_free().  Returns 0, or -ENOMEM with *out NULL. */
int dwunw_scopes_new(struct dwunw_scopes **out, Dwarf *dwarf);
void dwunw_scopes_free(struct dwunw_scopes *scopes);

struct dwunw_scope {
	bool in_function; /* function is set */
	bool near_zero; /* functions that the linker dropped, and left at 0, may seem to be here */
	uint64_t start; /* first address of the part of the function that is in one piece */
	Dwarf_Die function;
	size_t nr_inlined;
	Dwarf_Die inlined[DWUNW_MAX_INLINED]; /* the calls inlined here, innermost first */
};

/* What @addr is in, which must be in @unit; split units (.dwo) are not looked into.  Returns 0 or
 * -ENOMEM. */
int dwunw_scopes_find(struct dwunw_scopes *scopes, Dwarf_Die *unit, uint64_t addr,
		      struct dwunw_scope *out);

#endif
