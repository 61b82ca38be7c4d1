/* capture.c - from registers and stack bytes to frames */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "unwind/cfi.h"
#include "unwind/dwunw.h"
#include "unwind/space.h"
#include "unwind/step.h"

/* A walk from the frame at hand outwards. */
struct walk {
	struct dwunw_space *space;
	struct dwunw_walk at; /* the frame */
	uint32_t event_flags;
	bool is_return; /* the pc is a return address */
};

int dwunw_regset_prepare(struct dwunw_regset *rs, const uint64_t *regs, size_t nr_regs,
			 uint32_t event_flags)
{
	memset(rs, 0, sizeof(*rs));
	if (nr_regs != DWUNW_MAX_ARCH_REGS)
		return DWUNW_ERR_ARCH;
	memcpy(rs->reg, regs, sizeof(rs->reg));
	rs->known = (1u << DWUNW_MAX_ARCH_REGS) - 1;
	rs->flags = event_flags;
	return 0;
}

/* Describe the frame that @w stands at and go on to its caller. */
static int step(struct walk *w, struct dwunw_frame *frame)
{
	uint64_t pc = w->at.reg[DWUNW_X86_64_RIP], looked_up = pc - w->is_return;
	const struct dwunw_segment *segment = dwunw_space_find(w->space, looked_up);
	const struct dwunw_cfi_row *row;
	int next;

	*frame = (struct dwunw_frame){pc, pc, DWUNW_NO_MODULE,
				      w->is_return ? DWUNW_FRAME_FLAG_RETURN : 0};
	if (!segment || !segment->module)
		return DWUNW_STATUS_NO_CFI;
	frame->addr = pc - segment->bias;
	frame->module = segment->number;
	if (dwunw_cfi_find(segment->module->cfi, looked_up - segment->bias, &row))
		return -ENOMEM;
	/* Nothing called the trampoline: the kernel put its address there as the handler's return
	 * address, so the instruction before it means nothing. */
	if (row->signal)
		frame->flags = DWUNW_FRAME_FLAG_SIGNAL;
	if (row->kind == DWUNW_CFI_NONE)
		return DWUNW_STATUS_NO_CFI;
	if (row->kind == DWUNW_CFI_OUTERMOST)
		return DWUNW_STATUS_ENDED;
	w->at.bias = segment->bias;
	w->is_return = !row->signal;
	next = dwunw_step(&w->at, row);
	if (next != DWUNW_STEPPED || w->at.reg[DWUNW_X86_64_RIP])
		return next;
	/* Zero is the outermost frame's return address, but also what a missing page reads as. */
	return w->event_flags & DWUNW_EVENT_STACK_FAULT ? DWUNW_STATUS_TRUNCATED
							: DWUNW_STATUS_ENDED;
}

/* Does the walk stand at the very end of a stack that was taken as a whole?  Then no call can have
 * led here: it is the outermost frame, even of code without CFI, such as the dynamic loader's
 * start. */
static bool at_stack_end(const struct walk *w)
{
	const uint32_t cut =
		DWUNW_EVENT_STACK_LIMIT | DWUNW_EVENT_STACK_DEGRADED | DWUNW_EVENT_STACK_UNBOUNDED;
	uint64_t sp = w->at.reg[DWUNW_X86_64_RSP], end = w->at.stack->addr + w->at.stack->len;

	return !(w->event_flags & cut) && sp <= end && end - sp < sizeof(uint64_t);
}

int dwunw_capture(struct dwunw_space *space, const struct dwunw_regset *regs,
		  const struct dwunw_stack *stack, struct dwunw_frame *frames, size_t max_frames,
		  enum dwunw_status *status)
{
	struct walk w = {.space = space,
			 .at = {.stack = stack, .known = regs->known},
			 .event_flags = regs->flags};
	size_t nr = 0;
	int next = DWUNW_STEPPED;

	if (!max_frames)
		return -EINVAL;
	memcpy(w.at.reg, regs->reg, sizeof(w.at.reg));
	w.at.cfa = w.at.reg[DWUNW_X86_64_RSP];
	w.is_return = regs->flags & DWUNW_EVENT_RETURN_ADDRESS;
	while (next == DWUNW_STEPPED && nr < max_frames)
		next = step(&w, &frames[nr++]);
	if (next < 0)
		return next;
	if (next == DWUNW_STATUS_NO_CFI && nr > 1 && at_stack_end(&w))
		next = DWUNW_STATUS_ENDED;
	*status = next == DWUNW_STEPPED ? DWUNW_STATUS_FRAME_LIMIT : (enum dwunw_status)next;
	if (*status != DWUNW_STATUS_ENDED)
		frames[nr - 1].flags |= DWUNW_FRAME_FLAG_PARTIAL;
	return (int)nr;
}
