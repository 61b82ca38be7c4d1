/* extents.h - parts of memory, by address, and a walk through them */
#ifndef REPORT_EXTENTS_H
#define REPORT_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A block, a mapping, or a piece of an allocator's memory. */
struct extent {
	uint64_t start, end, time_ns;
	uint32_t stack;
};

/* Ascending and not overlapping, after extents_set_apart(). */
struct extents {
	struct extent *all;
	size_t nr, room;
	size_t next; /* of a walk through ascending addresses */
};

/* Sort them.  They overlap where frees were lost: then the younger one is there. */
void extents_set_apart(struct extents *e);

/* The part of the walk's extents that is in [@at, @end): NULL, and *@until is where the next one
 * begins, or one that holds @at, and *@until is its end. */
const struct extent *extents_part(struct extents *e, uint64_t at, uint64_t end, uint64_t *until);

/* Where the last one ends that the walk has passed by; 0: none. */
uint64_t extents_passed(const struct extents *e);

/* The one that holds @address; NULL: none does. */
const struct extent *extents_find(const struct extents *e, uint64_t address);

/* Is any of them in [@start, @end)? */
bool extents_any(const struct extents *e, uint64_t start, uint64_t end);

#endif
