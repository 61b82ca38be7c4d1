/* frame_table.h - every frame that was met, once
 *
 * Equal frames have one number, in whichever epoch of an address space they were met, and with it
 * their rule: module, address and flags decide on it.
 */
#ifndef DWUNW_FRAME_TABLE_H
#define DWUNW_FRAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/dwunw.h"
#include "unwind/elf/hash.h"
#include "unwind/tree/rule.h"

#define DWUNW_MAX_PLACES (1u << 30) /* two bits are left for users of the numbers */

/* What the hot loop looks at comes first. */
struct dwunw_place {
	uint64_t pc;
	struct dwunw_rule rule;
	uint64_t addr;
	uint32_t module;
	uint32_t flags; /* of the frame, without PARTIAL */
};

/* Number 0 is no place: its pc is 0, and where a return address is that, there is no caller. */
struct dwunw_frame_table {
	struct dwunw_place *all;
	uint32_t nr;
	size_t room;
	uint32_t *slots; /* of a hash, at most half full; 0: free */
	size_t nr_slots; /* a power of two */
	struct dwunw_seed seed;
};

/* An empty set.  Returns 0 or -ENOMEM; to be released in both cases. */
int dwunw_frame_table_init(struct dwunw_frame_table *places, const struct dwunw_seed *seed);
void dwunw_frame_table_release(struct dwunw_frame_table *places);

/* The number of @frame (whose flag PARTIAL is ignored), or 0. */
uint32_t dwunw_frame_table_find(const struct dwunw_frame_table *places,
				const struct dwunw_frame *frame);

/* Find the number of @frame (whose flag PARTIAL is ignored), or add it with a rule SLOW.
 * On success *number is set; places->all may have moved.  Returns 0 or -ENOMEM. */
int dwunw_frame_table_intern(struct dwunw_frame_table *places, const struct dwunw_frame *frame,
			     uint32_t *number);

#endif
