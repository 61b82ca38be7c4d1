/* space.h - what is mapped at an address, and what is known of a pc there */
#ifndef DWUNW_SPACE_H
#define DWUNW_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/dwunw.h"
#include "unwind/module/module.h"
#include "unwind/tree/pc_cache.h"

struct dwunw_stacks;

/* Addresses that are mapped to one part of one file. */
struct dwunw_segment {
	uint64_t start;
	uint64_t end;		     /* first address after it */
	uint64_t bias;		     /* address in the process minus address in the file */
	struct dwunw_module *module; /* NULL: none that is known */
	uint32_t number;	     /* of the module, maybe a foreign one; or DWUNW_NO_MODULE */
	uint32_t flags;		     /* enum dwunw_mapping_flag */
};

/* One epoch of an address space, and what was learned of its code. */
struct dwunw_space {
	struct dwunw *dw;
	struct dwunw_stacks *stacks; /* of dw */
	uint64_t serial;	     /* no other space of dw has or had it */
	struct dwunw_segment *segments;
	size_t nr;
	size_t last;	/* the one found last: the next address is often in the same */
	bool generated; /* there is generated code, */
	bool named;	/* and functions of it */
	struct dwunw_pc_cache pcs;
};

/* The segment with @addr in it, or NULL; valid as long as @space. */
const struct dwunw_segment *dwunw_space_find(struct dwunw_space *space, uint64_t addr);

/* The segment of generated code with the frame at @pc, looked up @as, in it; or NULL. */
const struct dwunw_segment *dwunw_space_generated(struct dwunw_space *space, uint64_t pc,
						  uint32_t as);

/* Does the function of @pc, looked up @as, which has no call frame information, keep a frame
 * pointer, as generated code does that is a part of a file? */
bool dwunw_space_keeps_pointer(struct dwunw_space *space, uint64_t pc, uint32_t as);

/* Find out about @pc, looked up @as, which space->pcs does not know yet, and add it there.
 * Returns its slot, or NULL when out of memory. */
struct dwunw_pc_slot *dwunw_locate(struct dwunw_space *space, uint64_t pc, uint32_t as);

/* The call frame information of @place, looked up @as: *row, valid until the next call, or
 * NULL if there is none.  *uncalled: @place is not behind a call, but the first byte of a function,
 * and the row is that of it.  Returns 0 or -ENOMEM. */
int dwunw_locate_row(struct dwunw_space *space, const struct dwunw_place *place, uint32_t as,
		     const struct dwunw_cfi_row **row, bool *uncalled);

#endif
