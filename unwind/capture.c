/* capture.c - from registers and stack bytes to frames */
#include <errno.h>
#include <string.h>

#include "unwind/dwunw.h"
#include "unwind/history.h"
#include "unwind/walk.h"

int dwunw_regset_prepare(struct dwunw_regset *rs, const uint64_t *regs, size_t nr_regs,
			 uint32_t event_flags)
{
	rs->flags = event_flags;
	rs->known = 0;
	if (nr_regs != DWUNW_MAX_ARCH_REGS)
		return DWUNW_ERR_ARCH;
	memcpy(rs->reg, regs, sizeof(rs->reg));
	rs->known = (1u << DWUNW_MAX_ARCH_REGS) - 1;
	return 0;
}

static int walk(struct dwunw_pass *p, bool *fast)
{
	int err = DWUNW_WALK_FULL;

	if (!(p->sample->flags & DWUNW_SAMPLE_FULL))
		err = dwunw_walk_fast(p);
	*fast = !err;
	return err == DWUNW_WALK_FULL ? dwunw_walk_full(p) : err;
}

int dwunw_capture(struct dwunw_space *space, const struct dwunw_sample *sample,
		  struct dwunw_frame *frames, size_t max_frames, struct dwunw_result *result)
{
	struct dwunw_stacks *stacks = space->stacks;
	struct dwunw_pass p = {
		.space = space,
		.stacks = stacks,
		.sample = sample,
		.marks = stacks->marks,
		.runs = stacks->runs,
		.limit = DWUNW_MAX_FRAMES,
	};
	bool fast;
	int err;

	if (frames && !max_frames)
		return -EINVAL;
	if (max_frames && max_frames < DWUNW_MAX_FRAMES)
		p.limit = (uint32_t)max_frames;
	err = walk(&p, &fast);
	if (!err)
		err = dwunw_pass_finish(&p, &result->id);
	if (err) {
		dwunw_history_clear(sample->history);
		return err;
	}
	result->status = p.status;
	result->nr_frames = p.nr + p.taken;
	result->nr_taken_over = p.taken;
	if (sample->history)
		dwunw_history_keep(&p, fast);
	if (frames)
		dwunw_stack_frames(space->dw, result->id, frames, max_frames);
	return 0;
}
