/* shared_loss.h - what a preloaded library counted as lost, or left out as was requested */
#ifndef RECORD_SHARED_LOSS_H
#define RECORD_SHARED_LOSS_H

#include <stdint.h>

#include "format/trace.h"
#include "record/libpreload/ring.h"

/* Add the counts in @memory, which has @nr_rings rings and may hold anything, to @losses. */
void shared_loss_add(const struct preload_header *memory, uint32_t nr_rings,
		     struct mlk_losses *losses);

#endif
