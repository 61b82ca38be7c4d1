/* cfi_pack.h - put the rules at one address into a row */
#ifndef DWUNW_CFI_PACK_H
#define DWUNW_CFI_PACK_H

#include "unwind/cfi/cfi.h"

/* Set all of *row but full.  If it becomes FULL, @rules are still needed. */
void dwunw_cfi_pack(struct dwunw_cfi_row *row, const struct dwunw_cfi_rules *rules);

#endif
