/* gap.h - room for code near other code */
#ifndef RECORD_INJECT_GAP_H
#define RECORD_INJECT_GAP_H

#include <stdint.h>

#include "record/target/maps.h"

/* How far a jump of 32 bits reaches, less what it may be off. */
#define INJECT_REACH ((UINT64_C(1) << 31) - (UINT64_C(1) << 20))

/* The nearest place for @bytes, a multiple of pages, that no mapping of @maps has, and from which
 * all of [@start, @end) is in reach.  The heap and the stack keep room to grow.  0: there is none.
 */
uint64_t inject_gap(const struct maps *maps, uint64_t start, uint64_t end, uint64_t bytes);

#endif
