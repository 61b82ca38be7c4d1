/* lines.c - compilation unit, then the call that was inlined or the unit's line table
 *
 * The line table has the line of the innermost inlined body, which may be in any header.  The line
 * to go with a function's name is that in the function itself: of its call that was inlined.
 */
#include "unwind/lines.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/ranges.h"
#include "unwind/scopes.h"

/* Rows looked at to find one of the right function. */
#define MAX_ROWS_BACK 1000
/* Searches through all functions of a unit for the one that follows in the source. */
#define MAX_EXTENTS 256

struct dwunw_lines {
	Dwarf *dwarf;
	bool indexed;		   /* units is made */
	struct dwunw_ranges units; /* item: offset of the unit's DIE */
	struct dwunw_scopes *scopes;
	unsigned int nr_extents;
};

int dwunw_lines_new(struct dwunw_lines **out, Dwarf *dwarf)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->dwarf = dwarf;
	if (dwunw_scopes_new(&(*out)->scopes, dwarf)) {
		free(*out);
		*out = NULL;
		return -ENOMEM;
	}
	return 0;
}

void dwunw_lines_free(struct dwunw_lines *lines)
{
	if (!lines)
		return;
	dwunw_scopes_free(lines->scopes);
	dwunw_ranges_release(&lines->units);
	free(lines);
}

static int add_unit(struct dwunw_lines *lines, Dwarf_Die *unit)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	int err = 0;

	/* Code that the linker dropped is left at 0. */
	while (!err && (at = dwarf_ranges(unit, at, &base, &start, &end)) > 0)
		if (start)
			err = dwunw_ranges_add(&lines->units, start, end, dwarf_dieoffset(unit));
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
	if (!err)
		err = dwunw_ranges_flatten(&lines->units);
	if (err)
		dwunw_ranges_release(&lines->units);
	lines->indexed = !err;
	return err;
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
	range = dwunw_ranges_find(&lines->units, addr);
	return range && dwarf_offdie(lines->dwarf, range->item, unit) ? 1 : 0;
}

/* The value of attribute @name of @die, or 0. */
static Dwarf_Word number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	return dwarf_attr(die, name, &attr) && !dwarf_formudata(&attr, &value) ? value : 0;
}

/* Where @inlined was called.  A compiler may know of no such place. */
static void place_of_call(Dwarf_Die *unit, Dwarf_Die *inlined, const char **file, uint32_t *line)
{
	Dwarf_Word at = number(inlined, DW_AT_call_line);
	Dwarf_Files *files;
	size_t nr;

	if (!at || at > INT_MAX || dwarf_getsrcfiles(unit, &files, &nr))
		return;
	*file = dwarf_filesrc(files, number(inlined, DW_AT_call_file), NULL, NULL);
	*line = *file ? (uint32_t)at : 0;
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
				   struct dwunw_scope *scope, uint64_t addr)
{
	struct extent extent;
	Dwarf_Lines *rows;
	Dwarf_Addr at;
	size_t nr, end;

	if (dwarf_getsrclines(unit, &rows, &nr) ||
	    !find_extent(lines, unit, &scope->function, &extent))
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

int dwunw_lines_find(struct dwunw_lines *lines, uint64_t addr, const char **file, uint32_t *line)
{
	struct dwunw_scope scope;
	Dwarf_Die unit;
	Dwarf_Line *row = NULL;
	int at = 0, found;

	*file = NULL;
	*line = 0;
	found = find_unit(lines, addr, &unit);
	if (found <= 0)
		return found;
	if (dwunw_scopes_find(lines->scopes, &unit, addr, &scope))
		return -ENOMEM;
	if (scope.in_inlined) {
		place_of_call(&unit, &scope.inlined, file, line);
		return 0;
	}
	if (scope.in_function && scope.near_zero)
		row = row_of_function(lines, &unit, &scope, addr);
	if (!row)
		row = dwarf_getsrc_die(&unit, addr);
	/* Line 0 is what compilers call code that comes from nowhere. */
	if (!row || dwarf_lineno(row, &at) || at <= 0)
		return 0;
	*file = dwarf_linesrc(row, NULL, NULL);
	*line = *file ? (uint32_t)at : 0;
	return 0;
}
