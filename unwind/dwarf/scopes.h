/* scopes.h - which function of the source an address is in, and what was inlined there */
#ifndef DWUNW_SCOPES_H
#define DWUNW_SCOPES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/addr_index.h"

/* Calls inlined into each other that are followed. */
#define DWUNW_MAX_INLINED 64

struct dwunw_scope_list;

/* What was looked up so far.  Zeroes and a Dwarf, which is borrowed, make one. */
struct dwunw_scopes {
	Dwarf *dwarf;
	uint64_t visits;
	uint64_t dropped_end;	       /* of the longest function left at 0; so far */
	struct dwunw_addr_index index; /* from the offset of a DIE to the number of its list */
	struct dwunw_scope_list *lists;
	uint32_t nr;
	size_t room;
};

/* Release the lists; the Dwarf stays. */
void dwunw_scopes_release(struct dwunw_scopes *scopes);

/* What an address is in. */
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
