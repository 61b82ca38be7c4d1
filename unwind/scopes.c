/* scopes.c - ranges of the functions of a unit, and of the inlined calls of a function
 *
 * Either list is made when it is first asked for, and kept: a report names few of the functions of
 * a program, but the same again and again.
 */
#include "unwind/scopes.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "unwind/addr_index.h"
#include "unwind/ranges.h"

/* DIEs of one file that are visited at most.  Damaged ones can form a graph in which the ways are
 * endless. */
#define MAX_VISITS ((uint64_t)1 << 24)
#define MAX_DEPTH  64

struct dwunw_scopes {
	Dwarf *dwarf;
	uint64_t visits;
	uint64_t dropped_end;	       /* of the longest function left at 0; so far */
	struct dwunw_addr_index index; /* from the offset of a DIE to the number of its list */
	struct dwunw_ranges *lists;    /* item: offset of a DIE below it */
	uint32_t nr, room;
};

/* One walk: the DIEs with tag @wanted are listed. */
struct walk {
	struct dwunw_scopes *scopes;
	struct dwunw_ranges *list;
	int wanted;
};

int dwunw_scopes_new(struct dwunw_scopes **out, Dwarf *dwarf)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->dwarf = dwarf;
	return 0;
}

void dwunw_scopes_free(struct dwunw_scopes *scopes)
{
	if (!scopes)
		return;
	for (uint32_t i = 0; i < scopes->nr; i++)
		dwunw_ranges_release(&scopes->lists[i]);
	free(scopes->lists);
	dwunw_addr_index_release(&scopes->index);
	free(scopes);
}

/* Can there be DIEs with tag @wanted below those with @tag?  Not beyond an inlined call: only the
 * outermost is wanted. */
static bool leads_to(int tag, int wanted)
{
	switch (tag) {
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return true;
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_subprogram: /* classes and functions may be local to it */
		return wanted == DW_TAG_subprogram;
	default:
		return false;
	}
}

static int add_ranges(const struct walk *walk, Dwarf_Die *die)
{
	struct dwunw_scopes *scopes = walk->scopes;
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	int err = 0;

	/* Code that the linker dropped is left at 0. */
	while (!err && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		if (start)
			err = dwunw_ranges_add(walk->list, start, end, dwarf_dieoffset(die));
		else if (end > scopes->dropped_end)
			scopes->dropped_end = end;
	}
	return err;
}

static int collect(const struct walk *walk, Dwarf_Die *parent, int depth)
{
	Dwarf_Die die, next;
	int err = 0;

	if (depth > MAX_DEPTH || dwarf_child(parent, &next))
		return 0;
	do {
		int tag;

		die = next;
		tag = dwarf_tag(&die);
		if (walk->scopes->visits++ > MAX_VISITS)
			return 0;
		if (tag == walk->wanted)
			err = add_ranges(walk, &die);
		if (!err && leads_to(tag, walk->wanted))
			err = collect(walk, &die, depth + 1);
	} while (!err && !dwarf_siblingof(&die, &next));
	return err;
}

static int add_list(struct dwunw_scopes *scopes, Dwarf_Die *parent, int wanted)
{
	uint32_t room = scopes->room ? 2 * scopes->room : 16;
	struct dwunw_ranges *lists, list = {0};
	const struct walk walk = {scopes, &list, wanted};

	if (scopes->nr == scopes->room) {
		lists = reallocarray(scopes->lists, room, sizeof(*lists));
		if (!lists)
			return -ENOMEM;
		scopes->lists = lists;
		scopes->room = room;
	}
	if (collect(&walk, parent, 0) || dwunw_ranges_flatten(&list) ||
	    dwunw_addr_index_add(&scopes->index, dwarf_dieoffset(parent), scopes->nr)) {
		dwunw_ranges_release(&list);
		return -ENOMEM;
	}
	scopes->lists[scopes->nr++] = list;
	return 0;
}

/* Find the piece with @addr in it of the DIEs @wanted below @parent; *range is NULL if there is
 * none.  Returns 0 or -ENOMEM. */
static int find(struct dwunw_scopes *scopes, Dwarf_Die *parent, int wanted, uint64_t addr,
		const struct dwunw_range **range)
{
	uint32_t nr = dwunw_addr_index_find(&scopes->index, dwarf_dieoffset(parent));
	int err = 0;

	if (nr == DWUNW_NOT_FOUND) {
		nr = scopes->nr;
		err = add_list(scopes, parent, wanted);
	}
	*range = err ? NULL : dwunw_ranges_find(&scopes->lists[nr], addr);
	return err;
}

int dwunw_scopes_find(struct dwunw_scopes *scopes, Dwarf_Die *unit, uint64_t addr,
		      struct dwunw_scope *out)
{
	const struct dwunw_range *range;
	int err;

	*out = (struct dwunw_scope){0};
	err = find(scopes, unit, DW_TAG_subprogram, addr, &range);
	if (err || !range || !dwarf_offdie(scopes->dwarf, range->item, &out->function))
		return err;
	out->in_function = true;
	out->start = range->start;
	out->near_zero = addr < scopes->dropped_end;
	err = find(scopes, &out->function, DW_TAG_inlined_subroutine, addr, &range);
	if (err || !range)
		return err;
	out->in_inlined = dwarf_offdie(scopes->dwarf, range->item, &out->inlined);
	return 0;
}
