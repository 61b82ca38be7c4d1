/* lines.c - compilation unit, then the calls that were inlined, then the unit's line table */
#include "unwind/dwarf/lines.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/elf/ranges.h"

/* Ranges of units that are examined: damaged units can share lists that are long. */
#define MAX_RANGES ((size_t)1 << 21)

/* Zeroes and a Dwarf, which is borrowed, make one. */
struct units {
	Dwarf *dwarf;
	bool indexed;		    /* ranges is made */
	struct dwunw_ranges ranges; /* item: offset of the unit's DIE */
};

static int add_unit(struct units *units, Dwarf_Die *unit)
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

static int index_units(struct units *units)
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

/* Find the unit with @addr in it: 1 found, 0 not, or -ENOMEM. */
static int find_unit(struct units *units, uint64_t addr, Dwarf_Die *unit)
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

/* Is @unit only the skeleton of one whose DIEs are in a file of their own (.dwo)? */
static bool is_split_unit(Dwarf_Die *unit)
{
	return dwarf_hasattr(unit, DW_AT_dwo_name) || dwarf_hasattr(unit, DW_AT_GNU_dwo_name);
}

/* Rows examined to find one of the right function. */
#define MAX_ROWS_BACK 1000
/* Searches through all functions of a unit for the one that follows in the source. */
#define MAX_EXTENTS 256

struct dwunw_lines {
	struct units units;
	struct dwunw_scopes scopes;
	unsigned int nr_extents;
};

int dwunw_lines_new(struct dwunw_lines **out, Dwarf *dwarf)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->units.dwarf = (*out)->scopes.dwarf = dwarf;
	return 0;
}

void dwunw_lines_free(struct dwunw_lines *lines)
{
	if (!lines)
		return;
	dwunw_scopes_release(&lines->scopes);
	dwunw_ranges_release(&lines->units.ranges);
	free(lines);
}

/* The value of attribute @name of @die; false if it has none. */
static bool number(Dwarf_Die *die, unsigned int name, Dwarf_Word *value)
{
	Dwarf_Attribute attr;

	return dwarf_attr(die, name, &attr) && !dwarf_formudata(&attr, value);
}

/* Where @inlined was called.  A compiler may know of no such place. */
static void place_of_call(Dwarf_Die *unit, Dwarf_Die *inlined, struct dwunw_line *out)
{
	Dwarf_Word line, file;
	Dwarf_Files *files;
	size_t nr;

	if (!number(inlined, DW_AT_call_line, &line) || !line || line > INT_MAX ||
	    !number(inlined, DW_AT_call_file, &file) || dwarf_getsrcfiles(unit, &files, &nr))
		return;
	out->file = dwarf_filesrc(files, file, NULL, NULL);
	out->line = out->file ? (uint32_t)line : 0;
}

/* The name of a function or an inlined call, as the linker knows it, else as the source has it. */
static const char *function_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_name, &attr))
		name = dwarf_formstring(&attr);
	return name && *name ? name : NULL;
}

/* The number of the last row of @lines at or before @addr, plus one. */
static size_t rows_until(Dwarf_Lines *lines, size_t nr, uint64_t addr)
{
	size_t low = 0, high = nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		Dwarf_Addr at;

		if (!dwarf_lineaddr(dwarf_onesrcline(lines, mid), &at) && at <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Where the source of a function is: from the line of its declaration to before that of the next
 * one. */
struct extent {
	const char *file;
	int line;
	int next;
};

static int end_at_next(Dwarf_Die *function, void *arg)
{
	struct extent *e = arg;
	const char *file;
	int line;

	if (!dwarf_decl_line(function, &line) && line > e->line && line < e->next &&
	    (file = dwarf_decl_file(function)) != NULL && !strcmp(file, e->file))
		e->next = line;
	return DWARF_CB_OK;
}

static bool find_extent(struct dwunw_lines *lines, Dwarf_Die *unit, Dwarf_Die *function,
			struct extent *e)
{
	*e = (struct extent){.file = dwarf_decl_file(function), .next = INT_MAX};
	if (!e->file || dwarf_decl_line(function, &e->line))
		return false;
	if (lines->nr_extents++ < MAX_EXTENTS)
		dwarf_getfuncs(unit, end_at_next, e, 0);
	return true;
}

static bool row_fits(Dwarf_Line *row, const struct extent *e)
{
	const char *file = dwarf_linesrc(row, NULL, NULL);
	bool ends = true;
	int at;

	return !dwarf_lineendsequence(row, &ends) && !ends && file && !strcmp(file, e->file) &&
	       !dwarf_lineno(row, &at) && at >= e->line && at < e->next;
}

/* The row for @addr, when those of functions that were dropped may be mixed with the right ones:
 * the last that can be of the function in @scope; NULL when there is none. */
static Dwarf_Line *row_of_function(struct dwunw_lines *lines, Dwarf_Die *unit,
				   const struct dwunw_scope *scope, uint64_t addr)
{
	Dwarf_Die innermost = scope->nr_inlined ? scope->inlined[0] : scope->function;
	struct extent extent;
	Dwarf_Lines *rows;
	Dwarf_Addr at;
	size_t nr, end;

	if (dwarf_getsrclines(unit, &rows, &nr) || !find_extent(lines, unit, &innermost, &extent))
		return NULL;
	end = rows_until(rows, nr, addr);
	for (size_t i = 1; i <= end && i <= MAX_ROWS_BACK; i++) {
		Dwarf_Line *row = dwarf_onesrcline(rows, end - i);

		if (dwarf_lineaddr(row, &at) || at < scope->start)
			break;
		if (row_fits(row, &extent))
			return row;
	}
	return NULL;
}

/* The place of @addr, which is in @scope, by the line table. */
static void place_of_address(struct dwunw_lines *lines, Dwarf_Die *unit,
			     const struct dwunw_scope *scope, uint64_t addr, struct dwunw_line *out)
{
	Dwarf_Line *row = NULL;
	int line = 0;

	if (scope->in_function && scope->near_zero)
		row = row_of_function(lines, unit, scope, addr);
	if (!row)
		row = dwarf_getsrc_die(unit, addr);
	/* Line 0 is what compilers call code that comes from nowhere. */
	if (!row || dwarf_lineno(row, &line) || line <= 0)
		return;
	out->file = dwarf_linesrc(row, NULL, NULL);
	out->line = out->file ? (uint32_t)line : 0;
}

static int find_source(struct dwunw_lines *lines, uint64_t addr, struct dwunw_source *out)
{
	struct dwunw_scope scope;
	Dwarf_Die unit;
	int found;

	out->nr = 1;
	out->place[0] = (struct dwunw_line){0};
	out->split = false;
	out->start = 0;
	found = find_unit(&lines->units, addr, &unit);
	if (found <= 0)
		return found;
	if (dwunw_scopes_find(&lines->scopes, &unit, addr, &scope))
		return -ENOMEM;
	out->split = is_split_unit(&unit);
	place_of_address(lines, &unit, &scope, addr, &out->place[0]);
	for (size_t i = 0; i < scope.nr_inlined; i++) {
		out->place[i].function = function_name(&scope.inlined[i]);
		out->place[i + 1] = (struct dwunw_line){0};
		place_of_call(&unit, &scope.inlined[i], &out->place[i + 1]);
		out->nr++;
	}
	if (scope.in_function) {
		out->place[out->nr - 1].function = function_name(&scope.function);
		out->start = scope.start;
	}
	return 0;
}

int dwunw_lines_find(struct dwunw_lines *lines, uint64_t addr, struct dwunw_source *out)
{
	int err;

	/* libdw does not tell it apart from what is not there; malloc(3) does */
	errno = 0;
	err = find_source(lines, addr, out);
	out->starved = errno == ENOMEM;
	return err;
}
