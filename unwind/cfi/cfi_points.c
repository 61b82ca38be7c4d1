/* cfi_points.c - see cfi_points.h */
#include "unwind/cfi/cfi_points.h"

const struct dwunw_cfi_checkpoint *dwunw_cfi_points_find(const struct dwunw_cfi_points *points,
							 const uint8_t *entry, uint64_t addr)
{
	const struct dwunw_cfi_checkpoint_key *keys = points->keys;
	const struct dwunw_cfi_checkpoint *best = NULL;
	uint64_t start = 0;

	for (size_t i = 0; i < points->nr; i++) {
		if (keys[i].entry != entry || keys[i].start > addr || keys[i].start < start)
			continue;
		start = keys[i].start;
		best = &points->all[i];
	}
	return best;
}

void dwunw_cfi_points_add(struct dwunw_cfi_points *points, const uint8_t *entry, const uint8_t *at,
			  uint32_t work, const struct dwunw_cfi_rules *rules)
{
	if (points->nr == DWUNW_CFI_MAX_CHECKPOINTS)
		return;
	points->keys[points->nr] = (struct dwunw_cfi_checkpoint_key){entry, rules->start};
	points->all[points->nr++] = (struct dwunw_cfi_checkpoint){at, work, *rules};
}
