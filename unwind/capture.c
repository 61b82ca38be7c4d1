/* capture.c - from registers and stack bytes to frames */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "unwind/cfi.h"
#include "unwind/dwunw.h"
#include "unwind/expr.h"
#include "unwind/space.h"
#include "unwind/stack.h"

/* What a step returns, besides a negative error and enum dwunw_status: the caller's frame was
 * found. */
#define STEPPED DWUNW_STATUS_NR

/* The frame at hand: its registers, and where they point. */
struct walk {
	struct dwunw_space *space;
	const struct dwunw_stack *stack;
	uint64_t reg[DWUNW_MAX_ARCH_REGS];
	uint32_t known;
	uint64_t cfa; /* of the frame inside of this one; of the first frame, its sp */
	uint64_t bias;
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

/* What it means when the CFA or the return address cannot be had. */
static enum dwunw_status status_of(enum dwunw_fetch fetch)
{
	switch (fetch) {
	case DWUNW_FETCH_ABOVE:
	case DWUNW_FETCH_UNKNOWN: /* its slot was above the bytes, in a frame before */
		return DWUNW_STATUS_TRUNCATED;
	case DWUNW_FETCH_BAD:
		return DWUNW_STATUS_NO_CFI;
	default:
		return DWUNW_STATUS_BAD_MEMORY;
	}
}

/* Set register @reg to what was fetched.  A register "saved" below the stack was popped already:
 * the function is about to return, and the value is in the register. */
static void set_register(struct walk *w, int reg, enum dwunw_fetch fetch, uint64_t value)
{
	if (fetch == DWUNW_FETCH_OK) {
		w->reg[reg] = value;
		w->known |= 1u << reg;
	} else if (fetch != DWUNW_FETCH_BELOW) {
		w->known &= ~(1u << reg);
	}
}

static int step_simple(struct walk *w, const struct dwunw_cfi_row *row)
{
	uint64_t cfa = w->reg[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_off, ra = 0;
	enum dwunw_fetch fetch;

	if (!(w->known & 1u << row->cfa_reg))
		return DWUNW_STATUS_TRUNCATED;
	if (cfa <= w->cfa)
		return DWUNW_STATUS_BAD_MEMORY;
	fetch = dwunw_stack_read(w->stack, cfa + (uint64_t)(int64_t)row->ra_off, sizeof(ra), &ra);
	if (fetch)
		return status_of(fetch);
	for (unsigned int i = 0; i < row->nr_saved; i++) {
		uint64_t value = 0;

		fetch = dwunw_stack_read(w->stack, cfa + (uint64_t)(int64_t)row->off[i],
					 sizeof(value), &value);
		set_register(w, row->reg[i], fetch, value);
	}
	w->known &= ~row->undefined;
	w->reg[DWUNW_X86_64_RIP] = ra;
	w->reg[DWUNW_X86_64_RSP] = w->cfa = cfa;
	w->known |= 1u << DWUNW_X86_64_RSP;
	return STEPPED;
}

/* Evaluate a rule's expression down to the value of the register. */
static enum dwunw_fetch rule_value(const struct dwunw_expr_env *env, const Dwarf_Op *ops,
				   size_t nops, uint64_t *value)
{
	bool is_value = false;
	enum dwunw_fetch fetch = dwunw_expr_eval(env, ops, nops, value, &is_value);

	if (fetch || is_value)
		return fetch;
	return dwunw_stack_read(env->stack, *value, sizeof(*value), value);
}

/* Change register @reg of @w to the caller's, by the registers in @env. */
static enum dwunw_fetch apply_rule(struct walk *w, const struct dwunw_expr_env *env,
				   const struct dwunw_cfi_row *row, int reg)
{
	Dwarf_Op mem[3], *ops;
	size_t nops;
	uint64_t value = 0;
	enum dwunw_fetch fetch;

	switch (dwunw_cfi_full_rule(row, reg, mem, &ops, &nops)) {
	case DWUNW_CFI_RULE_SAME:
		return DWUNW_FETCH_OK;
	case DWUNW_CFI_RULE_UNDEFINED:
		/* libdw says so too of a scratch register that has no rule: it is kept, as libgcc
		 * does, for code whose own conventions rely on it. */
		w->known &= ~(DWUNW_CFI_CALLEE_SAVED & 1u << reg);
		return DWUNW_FETCH_OK;
	default:
		fetch = rule_value(env, ops, nops, &value);
		set_register(w, reg, fetch, value);
		return fetch;
	}
}

static int step_full(struct walk *w, const struct dwunw_cfi_row *row)
{
	const struct walk old = *w;
	struct dwunw_expr_env env = {
		.reg = old.reg, .known = old.known, .stack = old.stack, .bias = old.bias};
	enum dwunw_fetch fetch;
	bool is_value;
	uint64_t cfa = 0;
	Dwarf_Op *ops;
	size_t nops;

	if (dwarf_frame_cfa(row->frame, &ops, &nops))
		return DWUNW_STATUS_NO_CFI;
	/* The result is the CFA, never the address of it. */
	fetch = dwunw_expr_eval(&env, ops, nops, &cfa, &is_value);
	if (fetch)
		return status_of(fetch);
	if (cfa <= old.cfa)
		return DWUNW_STATUS_BAD_MEMORY;
	env.cfa = &cfa;
	w->reg[DWUNW_X86_64_RSP] = w->cfa = cfa;
	w->known |= 1u << DWUNW_X86_64_RSP;
	for (int reg = 0; reg < DWUNW_X86_64_RIP; reg++)
		apply_rule(w, &env, row, reg);
	fetch = apply_rule(w, &env, row, DWUNW_X86_64_RIP);
	return fetch ? (int)status_of(fetch) : STEPPED;
}

/* Describe the frame that @w stands at and go on to its caller. */
static int step(struct walk *w, struct dwunw_frame *frame)
{
	uint64_t pc = w->reg[DWUNW_X86_64_RIP], looked_up = pc - w->is_return;
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
	w->bias = segment->bias;
	w->is_return = !row->signal;
	next = row->kind == DWUNW_CFI_SIMPLE ? step_simple(w, row) : step_full(w, row);
	if (next != STEPPED || w->reg[DWUNW_X86_64_RIP])
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
	uint64_t sp = w->reg[DWUNW_X86_64_RSP], end = w->stack->addr + w->stack->len;

	return !(w->event_flags & cut) && sp <= end && end - sp < sizeof(uint64_t);
}

int dwunw_capture(struct dwunw_space *space, const struct dwunw_regset *regs,
		  const struct dwunw_stack *stack, struct dwunw_frame *frames, size_t max_frames,
		  enum dwunw_status *status)
{
	struct walk w = {
		.space = space, .stack = stack, .known = regs->known, .event_flags = regs->flags};
	size_t nr = 0;
	int next = STEPPED;

	if (!max_frames)
		return -EINVAL;
	memcpy(w.reg, regs->reg, sizeof(w.reg));
	w.cfa = w.reg[DWUNW_X86_64_RSP];
	w.is_return = regs->flags & DWUNW_EVENT_RETURN_ADDRESS;
	while (next == STEPPED && nr < max_frames)
		next = step(&w, &frames[nr++]);
	if (next < 0)
		return next;
	if (next == DWUNW_STATUS_NO_CFI && nr > 1 && at_stack_end(&w))
		next = DWUNW_STATUS_ENDED;
	*status = next == STEPPED ? DWUNW_STATUS_FRAME_LIMIT : (enum dwunw_status)next;
	if (*status != DWUNW_STATUS_ENDED)
		frames[nr - 1].flags |= DWUNW_FRAME_FLAG_PARTIAL;
	return (int)nr;
}
