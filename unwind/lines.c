/* lines.c - compilation unit, then its line table */
#include "unwind/lines.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "unwind/ranges.h"

struct dwunw_lines {
	Dwarf *dwarf;
	bool indexed; /* units is made */
	struct dwunw_range *units;
	size_t nr, room; /* item: offset of the unit's DIE */
};

int dwunw_lines_new(struct dwunw_lines **out, Dwarf *dwarf)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->dwarf = dwarf;
	return 0;
}

void dwunw_lines_free(struct dwunw_lines *lines)
{
	if (!lines)
		return;
	free(lines->units);
	free(lines);
}

static int add_range(struct dwunw_lines *lines, const struct dwunw_range *range)
{
	size_t room = lines->room ? 2 * lines->room : 64;
	struct dwunw_range *units;

	if (lines->nr == lines->room) {
		units = reallocarray(lines->units, room, sizeof(*units));
		if (!units)
			return -ENOMEM;
		lines->units = units;
		lines->room = room;
	}
	lines->units[lines->nr++] = *range;
	return 0;
}

static int add_unit(struct dwunw_lines *lines, Dwarf_Die *unit)
{
	struct dwunw_range range = {.item = dwarf_dieoffset(unit)};
	Dwarf_Addr base;
	ptrdiff_t at = 0;
	int err = 0;

	/* Code that the linker dropped is left at 0. */
	while (!err && (at = dwarf_ranges(unit, at, &base, &range.start, &range.end)) > 0)
		if (range.start && range.start < range.end)
			err = add_range(lines, &range);
	return err;
}

static int index_units(struct dwunw_lines *lines)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	uint8_t type;
	int err = 0;

	while (!err && !dwarf_get_units(lines->dwarf, cu, &cu, NULL, &type, &unit, NULL))
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			err = add_unit(lines, &unit);
	if (err) {
		lines->nr = 0;
		return err;
	}
	dwunw_ranges_link(lines->units, lines->nr);
	lines->indexed = true;
	return 0;
}

/* Find the unit with @addr in it: 1 found, 0 not, or -ENOMEM. */
static int find_unit(struct dwunw_lines *lines, uint64_t addr, Dwarf_Die *unit)
{
	const struct dwunw_range *range;
	int err;

	if (dwarf_addrdie(lines->dwarf, addr, unit))
		return 1;
	/* Some compilers write no .debug_aranges: then the units must be looked at one by one. */
	err = lines->indexed ? 0 : index_units(lines);
	if (err)
		return err;
	range = dwunw_ranges_find(lines->units, lines->nr, addr);
	return range && dwarf_offdie(lines->dwarf, range->item, unit) ? 1 : 0;
}

int dwunw_lines_find(struct dwunw_lines *lines, uint64_t addr, const char **file, uint32_t *line)
{
	Dwarf_Die unit;
	Dwarf_Line *row;
	int number = 0, found;

	*file = NULL;
	*line = 0;
	found = find_unit(lines, addr, &unit);
	if (found <= 0)
		return found;
	row = dwarf_getsrc_die(&unit, addr);
	/* Line 0 is what compilers call code that comes from nowhere. */
	if (!row || dwarf_lineno(row, &number) || number <= 0)
		return 0;
	*file = dwarf_linesrc(row, NULL, NULL);
	*line = *file ? (uint32_t)number : 0;
	return 0;
}
