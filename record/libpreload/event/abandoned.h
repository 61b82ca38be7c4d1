/* abandoned.h - events that are being written no more: a signal handler that interrupted them was
 * left by a jump */
#ifndef LIBPRELOAD_ABANDONED_H
#define LIBPRELOAD_ABANDONED_H

#include "record/libpreload/event/thread_ring.h"

/* An event of this thread comes at the stack pointer @sp: give up the events that were left, and
 * count as lost what they would have told.  Returns how many are still being written: to the first
 * of preload_self.lanes, each to one. */
uint32_t abandoned_settle(struct preload_header *h, uint64_t sp);

#endif
