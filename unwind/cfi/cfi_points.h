/* cfi_points.h - places within long FDEs from which their instructions can be gone on with */
#ifndef DWUNW_CFI_POINTS_H
#define DWUNW_CFI_POINTS_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/cfi/cfi_rules.h"

/* Units of work between two checkpoints of an FDE. */
#define DWUNW_CFI_CHECKPOINT_WORK 512
/* An FDE of no more bytes of instructions has none: it is gone through from its beginning. */
#define DWUNW_CFI_CHECKPOINT_LEN 2048
/* Checkpoints of a file.  Without a free one a look-up takes longer, nothing else. */
#define DWUNW_CFI_MAX_CHECKPOINTS 512

/* A place within the instructions of an FDE. */
struct dwunw_cfi_checkpoint {
	const uint8_t *at;	      /* the next instruction */
	uint32_t work;		      /* that was done up to here */
	struct dwunw_cfi_rules rules; /* from rules.start on */
};

/* What a checkpoint is looked up by. */
struct dwunw_cfi_checkpoint_key {
	const uint8_t *entry; /* the FDE */
	uint64_t start;	      /* rules.start */
};

/* All checkpoints of a file.  Zeroes: there are none. */
struct dwunw_cfi_points {
	size_t nr;
	struct dwunw_cfi_checkpoint_key keys[DWUNW_CFI_MAX_CHECKPOINTS];
	struct dwunw_cfi_checkpoint all[DWUNW_CFI_MAX_CHECKPOINTS];
};

/* The last checkpoint of the FDE @entry that is not after @addr; NULL if there is none.  Valid as
 * long as @points. */
const struct dwunw_cfi_checkpoint *dwunw_cfi_points_find(const struct dwunw_cfi_points *points,
							 const uint8_t *entry, uint64_t addr);

/* Keep a checkpoint of the FDE @entry, if there is room: its next instruction is @at, after @work
 * that made @rules. */
void dwunw_cfi_points_add(struct dwunw_cfi_points *points, const uint8_t *entry, const uint8_t *at,
			  uint32_t work, const struct dwunw_cfi_rules *rules);

#endif
