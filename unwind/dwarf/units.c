/* units.c - by .debug_aranges where that tells, else by the ranges of all units */
#include "unwind/dwarf/units.h"

#include <dwarf.h>

/* Ranges of units that are examined: damaged units can share lists that are long. */
#define MAX_RANGES ((size_t)1 << 21)

void dwunw_units_release(struct dwunw_units *units)
{
	dwunw_ranges_release(&units->ranges);
}

static int add_unit(struct dwunw_units *units, Dwarf_Die *unit)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	int err = 0;

	/* Code that the linker dropped is left at 0. */
	while (!err && units->ranges.nr < MAX_RANGES &&
	       (at = dwarf_ranges(unit, at, &base, &start, &end)) > 0)
		if (start)
			err = dwunw_ranges_add(&units->ranges, start, end, dwarf_dieoffset(unit));
	return err;
}

static int index_units(struct dwunw_units *units)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	uint8_t type;
	int err = 0;

	/* No sub-DIE is requested: libdw would open the .dwo file that a skeleton names. */
	while (!err && !dwarf_get_units(units->dwarf, cu, &cu, NULL, &type, &unit, NULL))
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			err = add_unit(units, &unit);
	if (!err)
		err = dwunw_ranges_flatten(&units->ranges);
	if (err)
		dwunw_ranges_release(&units->ranges);
	units->indexed = !err;
	return err;
}

int dwunw_units_find(struct dwunw_units *units, uint64_t addr, Dwarf_Die *unit)
{
	const struct dwunw_range *range;
	int err;

	if (dwarf_addrdie(units->dwarf, addr, unit))
		return 1;
	/* Some compilers write no .debug_aranges: then the units must be examined one by one. */
	err = units->indexed ? 0 : index_units(units);
	if (err)
		return err;
	range = dwunw_ranges_find(&units->ranges, addr);
	return range && dwarf_offdie(units->dwarf, range->item, unit) ? 1 : 0;
}

bool dwunw_unit_is_split(Dwarf_Die *unit)
{
	return dwarf_hasattr(unit, DW_AT_dwo_name) || dwarf_hasattr(unit, DW_AT_GNU_dwo_name);
}
