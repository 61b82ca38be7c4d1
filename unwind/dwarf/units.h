/* units.h - which compilation unit an address is in */
#ifndef DWUNW_UNITS_H
#define DWUNW_UNITS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "unwind/elf/ranges.h"

/* Zeroes and a Dwarf, which is borrowed, make one. */
struct dwunw_units {
	Dwarf *dwarf;
	bool indexed;		    /* ranges is made */
	struct dwunw_ranges ranges; /* item: offset of the unit's DIE */
};

void dwunw_units_release(struct dwunw_units *units);

/* Find the unit with @addr in it: 1 found, 0 not, or -ENOMEM. */
int dwunw_units_find(struct dwunw_units *units, uint64_t addr, Dwarf_Die *unit);

/* Is @unit only the skeleton of one whose DIEs are in a file of their own (.dwo)? */
bool dwunw_unit_is_split(Dwarf_Die *unit);

#endif
