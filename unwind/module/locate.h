/* locate.h - what is known of a pc in one epoch of an address space */
#ifndef DWUNW_LOCATE_H
#define DWUNW_LOCATE_H

#include <stdbool.h>

#include "unwind/module/space.h"
#include "unwind/tree/pc_cache.h"

/* Find out about @pc, looked up @as, which space->pcs does not know yet, and add it there.
 * Returns its slot, or NULL when out of memory. */
struct dwunw_pc_slot *dwunw_locate(struct dwunw_space *space, uint64_t pc, uint32_t as);

/* The call frame information of @place, looked up @as: *row, valid until the next call, or
 * NULL if there is none.  *uncalled: @place is not behind a call, but the first byte of a function,
 * and the row is that of it.  Returns 0 or -ENOMEM. */
int dwunw_locate_row(struct dwunw_space *space, const struct dwunw_place *place, uint32_t as,
		     const struct dwunw_cfi_row **row, bool *uncalled);

#endif
