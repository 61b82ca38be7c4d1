/* scopes.c - ranges of the functions of a unit, and of the inlined calls of a function
 *
 * Either list is made when it is first asked for, and kept: a report names few of the functions of
 * a program, but the same again and again.
 */
#include "unwind/dwarf/scopes.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "unwind/elf/ranges.h"

/* DIEs of one file that are visited at most.  Damaged ones can form a graph in which the ways are
 * endless. */
#define MAX_VISITS ((uint64_t)1 << 24)
#define MAX_DEPTH  (2 * DWUNW_MAX_INLINED)
/* Ranges of one list, for the same reason. */
#define MAX_RANGES ((size_t)1 << 20)

#define NO_PARENT UINT32_MAX

/* A function, or a call that was inlined. */
struct node {
	uint64_t die;	 /* its offset */
	uint32_t parent; /* the call it was inlined into, or NO_PARENT */
};

struct dwunw_scope_list {
	struct dwunw_ranges ranges; /* item: number of the node */
	struct node *nodes;
	uint32_t nr;
	size_t room;
};

/* One walk: the DIEs with tag @wanted are listed. */
struct walk {
	struct dwunw_scopes *scopes;
	struct dwunw_scope_list *list;
	int wanted;
};

static void release_list(struct dwunw_scope_list *list)
{
	dwunw_ranges_release(&list->ranges);
	free(list->nodes);
}

void dwunw_scopes_release(struct dwunw_scopes *scopes)
{
	for (uint32_t i = 0; i < scopes->nr; i++)
		release_list(&scopes->lists[i]);
	free(scopes->lists);
	dwunw_addr_index_release(&scopes->index);
}

/* Can there be DIEs with tag @wanted below those with @tag? */
static bool leads_to(int tag, int wanted)
{
	switch (tag) {
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return true;
	case DW_TAG_inlined_subroutine:
		return wanted == DW_TAG_inlined_subroutine;
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

static int add_node(struct dwunw_scope_list *list, uint64_t die, uint32_t parent)
{
	if (grow_array(&list->nodes, list->nr, &list->room, sizeof(*list->nodes)))
		return -ENOMEM;
	list->nodes[list->nr++] = (struct node){die, parent};
	return 0;
}

static int add_ranges(const struct walk *walk, Dwarf_Die *die)
{
	struct dwunw_scopes *scopes = walk->scopes;
	struct dwunw_ranges *ranges = &walk->list->ranges;
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	int err = 0;

	/* Code that the linker dropped is left at 0. */
	while (!err && ranges->nr < MAX_RANGES && scopes->visits++ <= MAX_VISITS &&
	       (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		if (start)
			err = dwunw_ranges_add(ranges, start, end, walk->list->nr - 1);
		else if (end > scopes->dropped_end)
			scopes->dropped_end = end;
	}
	return err;
}

/* List what is below @parent; @into is the node of the call that it is a part of. */
static int collect(const struct walk *walk, Dwarf_Die *parent, uint32_t into, int depth)
{
	Dwarf_Die die, next;
	int err = 0;

	if (depth > MAX_DEPTH || dwarf_child(parent, &next))
		return 0;
	do {
		uint32_t inside = into;
		int tag;

		die = next;
		tag = dwarf_tag(&die);
		if (walk->scopes->visits++ > MAX_VISITS)
			return 0;
		if (tag == walk->wanted) {
			err = add_node(walk->list, dwarf_dieoffset(&die), into);
			if (!err)
				err = add_ranges(walk, &die);
			if (tag == DW_TAG_inlined_subroutine)
				inside = walk->list->nr - 1;
		}
		if (!err && leads_to(tag, walk->wanted))
			err = collect(walk, &die, inside, depth + 1);
	} while (!err && !dwarf_siblingof(&die, &next));
	return err;
}

static int add_list(struct dwunw_scopes *scopes, Dwarf_Die *parent, int wanted)
{
	struct dwunw_scope_list list = {0};
	const struct walk walk = {scopes, &list, wanted};

	if (grow_array(&scopes->lists, scopes->nr, &scopes->room, sizeof(list)) ||
	    collect(&walk, parent, NO_PARENT, 0) || dwunw_ranges_flatten(&list.ranges) ||
	    dwunw_addr_index_add(&scopes->index, dwarf_dieoffset(parent), scopes->nr)) {
		release_list(&list);
		return -ENOMEM;
	}
	scopes->lists[scopes->nr++] = list;
	return 0;
}

struct found {
	const struct dwunw_scope_list *list; /* valid until the next search */
	const struct node *node;	     /* NULL: none */
	uint64_t start;			     /* of the piece */
};

/* Find the innermost of the DIEs @wanted below @parent that has @addr in it.  Returns 0 or -ENOMEM.
 */
static int find_die(struct dwunw_scopes *scopes, Dwarf_Die *parent, int wanted, uint64_t addr,
		    struct found *found)
{
	uint32_t nr = dwunw_addr_index_find(&scopes->index, dwarf_dieoffset(parent));
	const struct dwunw_range *range;
	int err = 0;

	if (nr == DWUNW_NOT_FOUND) {
		nr = scopes->nr;
		err = add_list(scopes, parent, wanted);
		if (err)
			return err;
	}
	found->list = &scopes->lists[nr];
	range = dwunw_ranges_find(&found->list->ranges, addr);
	found->node = range ? &found->list->nodes[range->item] : NULL;
	found->start = range ? range->start : 0;
	return 0;
}

int dwunw_scopes_find(struct dwunw_scopes *scopes, Dwarf_Die *unit, uint64_t addr,
		      struct dwunw_scope *out)
{
	struct found found;
	int err;

	out->in_function = out->near_zero = false;
	out->nr_inlined = 0;
	err = find_die(scopes, unit, DW_TAG_subprogram, addr, &found);
	if (err || !found.node || !dwarf_offdie(scopes->dwarf, found.node->die, &out->function))
		return err;
	out->in_function = true;
	out->start = found.start;
	out->near_zero = addr < scopes->dropped_end;
	err = find_die(scopes, &out->function, DW_TAG_inlined_subroutine, addr, &found);
	if (err)
		return err;
	while (found.node && out->nr_inlined < DWUNW_MAX_INLINED &&
	       dwarf_offdie(scopes->dwarf, found.node->die, &out->inlined[out->nr_inlined])) {
		uint32_t parent = found.node->parent;

		out->nr_inlined++;
		found.node = parent == NO_PARENT ? NULL : &found.list->nodes[parent];
	}
	return 0;
}
