/* freed_set.h - addresses of blocks that were freed, and not allocated again
 *
 * When a thread ends, glibc frees what is in the thread's cache once more.  Without this set each
 * of these frees would look like one of a block from before the recording.
 */
#ifndef REPORT_FREED_SET_H
#define REPORT_FREED_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is an empty set. */
struct freed_set {
	uint64_t *slots; /* zero: empty */
	size_t nr_slots; /* zero or a power of two */
	size_t nr;
};

/* @addr was freed; it may be there already, and is not 0.  Of very many all are forgotten first, as
 * what is freed last matters most; and without memory nothing is done. */
void freed_set_add(struct freed_set *set, uint64_t addr);

/* Was a block freed at @addr? */
bool freed_set_has(const struct freed_set *set, uint64_t addr);

/* A block was allocated at @addr, which may be in the set. */
void freed_set_drop(struct freed_set *set, uint64_t addr);

/* Release what @set holds and leave it empty. */
void freed_set_release(struct freed_set *set);

#endif
