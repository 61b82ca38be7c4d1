/* full.c - the walk with all registers and any expression: what the hot loop must agree with */
#include <errno.h>

#include "unwind/walk/guess.h"
#include "unwind/walk/step.h"
#include "unwind/walk/walk.h"

/* A walk from the current frame outwards. */
struct full {
	struct dwunw_pass *pass;
	struct dwunw_walk at; /* the frame */
	uint32_t as;	      /* what its pc is looked up as */
	bool guessed;	      /* the frame, or one that led to it, is a guess */
	bool intact;	      /* no step failed halfway: the registers are the frame's */
	bool generated;	      /* the frame is in generated code, */
	bool function;	      /* and it is told in which function of it; */
	bool keeps;	      /* it is, or in what V8 calls builtins: it keeps a frame pointer */
	uint32_t frame_size;  /* of the function, in bytes; 0: not known */
	bool in_run;	      /* the frame before told no more than that it is of generated code */
	bool doubts;	      /* frame pointers are guesses */
	bool pointed;	      /* one was followed that is no guess */
	bool unsure;	      /* and there was no generated code on that way */
	bool leads;	      /* one led to the frame, and */
	bool near;	      /* that was from generated code, or through some */
};

/* Is the frame at @place in generated code?  What of that is a part of a file is told as functions
 * only where the others are. */
static void find_kind(struct full *f, const struct dwunw_place *place)
{
	struct dwunw_space *space = f->pass->space;
	const uint64_t pc = f->at.reg[DWUNW_X86_64_RIP];
	const struct dwunw_segment *segment = dwunw_space_generated(space, pc, f->as);

	f->keeps = segment || (place->rule.kind == DWUNW_RULE_NONE &&
			       dwunw_space_keeps_pointer(space, pc, f->as));
	f->function = segment && segment->flags & DWUNW_MAPPING_FUNCTION;
	f->frame_size = f->function ? segment->flags >> DWUNW_MAPPING_SIZE_SHIFT : 0;
	f->generated = segment || (f->keeps && !space->named);
}

/* What is told of the frame at @place. */
static struct dwunw_frame describe_frame(const struct full *f, const struct dwunw_place *place)
{
	struct dwunw_frame frame = {place->pc, place->addr, place->module, place->flags};

	if (f->generated) {
		frame.pc = frame.addr = 0;
		frame.module = f->function ? frame.module : DWUNW_NO_MODULE;
		frame.flags |= DWUNW_FRAME_FLAG_GENERATED;
	}
	if (f->guessed)
		frame.flags |= DWUNW_FRAME_FLAG_GUESSED;
	else if (f->leads)
		frame.flags |= DWUNW_FRAME_FLAG_POINTER;
	return frame;
}

/* Find the place of the frame p->nr, which @f is at, and the one that is told of it.  Returns 0 or
 * -ENOMEM. */
static int find_place(struct full *f, uint32_t *number, uint32_t *told)
{
	struct dwunw_pass *p = f->pass;
	uint64_t pc = f->at.reg[DWUNW_X86_64_RIP];
	struct dwunw_pc_slot *slot =
		dwunw_pc_cache_find(&p->space->pcs, &p->stacks->seed, pc, f->as);
	struct dwunw_frame frame;

	if (!slot)
		slot = dwunw_locate(p->space, pc, f->as);
	if (!slot)
		return -ENOMEM;
	*number = *told = slot->place & ~DWUNW_PC_AS;
	find_kind(f, &p->stacks->places.all[*number]);
	if (!f->guessed && !f->generated && !f->leads)
		return 0;
	frame = describe_frame(f, &p->stacks->places.all[*number]);
	return dwunw_frame_table_intern(&p->stacks->places, &frame, told);
}

static bool same_state(const struct dwunw_walk *a, const struct dwunw_walk *b)
{
	if (a->known != b->known)
		return false;
	for (int reg = 0; reg < DWUNW_MAX_ARCH_REGS; reg++)
		if (a->known >> reg & 1 && a->reg[reg] != b->reg[reg])
			return false;
	return true;
}

/* dwunw_step(), that also finds out whether bytes from another moment had to do with it. */
static int step(struct full *f, const struct dwunw_cfi_row *row)
{
	const struct dwunw_sample *s = f->pass->sample;
	struct dwunw_stack fresh = *s->stack;
	struct dwunw_walk without = f->at;
	int next = dwunw_step(&f->at, row);

	if (f->as & DWUNW_PC_STALE || s->stale_from >= fresh.addr + fresh.len)
		return next;
	fresh.len = s->stale_from > fresh.addr ? s->stale_from - fresh.addr : 0;
	without.stack = &fresh;
	if (dwunw_step(&without, row) != next ||
	    (next == DWUNW_STEPPED && !same_state(&without, &f->at)))
		f->as |= DWUNW_PC_STALE;
	return next;
}

/* Does @row need a register that a guess did not find?  Then only another guess leads on. */
static bool needs_lost_register(const struct full *f, const struct dwunw_cfi_row *row)
{
	return (f->guessed || f->pointed) && row->kind == DWUNW_CFI_SIMPLE &&
	       !(f->at.known >> row->cfa_reg & 1);
}

/* Append the frame that is told as place @told, unless it goes on with generated code. */
static void append_frame(struct full *f, uint32_t told)
{
	struct dwunw_pass *p = f->pass;
	bool goes_on = f->generated && !f->function;

	if (!goes_on || !f->in_run) {
		p->marks[p->nr].node = DWUNW_NO_NODE;
		p->runs[p->nr] = (struct dwunw_run){p->nr, told, DWUNW_NO_SLOT, 0};
		p->nr_runs = ++p->nr;
	}
	f->in_run = goes_on;
}

/* The frame has call frame information: was the way to it one through generated code? */
static void end_run(struct full *f)
{
	f->unsure |= f->leads && !f->near;
	f->leads = f->near = false;
}

/* Describe the frame that @f is at and go on to its caller.  Returns DWUNW_STEPPED, why there is no
 * caller, or -ENOMEM. */
static int visit(struct full *f)
{
	struct dwunw_pass *p = f->pass;
	const struct dwunw_place *place;
	const struct dwunw_cfi_row *row;
	uint32_t number, told;
	bool uncalled;
	int next;

	if (find_place(f, &number, &told))
		return -ENOMEM;
	append_frame(f, told);
	place = &p->stacks->places.all[number];
	f->at.bias = place->pc - place->addr;
	if (dwunw_locate_row(p->space, place, f->as, &row, &uncalled))
		return -ENOMEM;
	f->intact = !row || row->kind == DWUNW_CFI_NONE || needs_lost_register(f, row);
	if (f->intact)
		return DWUNW_STATUS_NO_CFI;
	end_run(f);
	if (row->kind == DWUNW_CFI_OUTERMOST)
		return dwunw_pass_ended(p, false, f->as & DWUNW_PC_STALE);
	if (row->kind == DWUNW_CFI_SWITCH &&
	    !(row->whole && p->sample->regs->flags & DWUNW_EVENT_STACK_JOINED))
		return DWUNW_STATUS_NOT_CODE;
	next = step(f, row);
	f->as = (f->as & DWUNW_PC_STALE) | (row->signal ? 0 : DWUNW_PC_RETURN);
	if (next != DWUNW_STEPPED)
		return next;
	/* Nor will it return: where its return address would be is something else.  Nothing is
	 * missing where that reads as zero. */
	if (uncalled && !dwunw_space_find(p->space, f->at.reg[DWUNW_X86_64_RIP]))
		return dwunw_pass_ended(p, false, f->as & DWUNW_PC_STALE);
	if (!f->at.reg[DWUNW_X86_64_RIP])
		return dwunw_pass_ended(p, true, f->as & DWUNW_PC_STALE);
	if (p->nr < p->limit && !dwunw_pass_is_code(p, f->at.reg[DWUNW_X86_64_RIP], f->as) &&
	    !dwunw_pass_at_end(p, f->at.reg[DWUNW_X86_64_RSP]))
		return DWUNW_STATUS_NOT_CODE;
	return next;
}

/* Take the frame, which is in generated code, to its caller; or where nothing is told of such code,
 * to what called it. */
static bool leave_generated(struct full *f)
{
	if (f->frame_size)
		return dwunw_by_frame_size(f->pass, &f->at, f->frame_size);
	return dwunw_by_frame_pointer(f->pass, &f->at) ||
	       ((f->doubts || !f->function) && dwunw_by_saved_pointer(f->pass, &f->at));
}

/* Follow the frame pointer of a frame in generated code, or of what such code called. */
static bool follow_pointer(struct full *f)
{
	const struct dwunw_pass *p = f->pass;
	bool keeps = f->generated ||
		     dwunw_space_keeps_pointer(p->space, f->at.reg[DWUNW_X86_64_RIP], f->as);

	if (f->doubts || !(keeps || p->space->generated) ||
	    !(f->generated ? leave_generated(f) : dwunw_by_frame_pointer(p, &f->at)))
		return false;
	f->pointed = f->leads = true;
	f->near |= f->keeps;
	return true;
}

/* Guess the caller.  Words that look like return addresses tell nothing of generated code: it has
 * many that are none. */
static bool guess_caller(struct full *f)
{
	if (f->generated ? !f->doubts || !leave_generated(f) : !dwunw_guess_caller(f->pass, &f->at))
		return false;
	f->guessed = true;
	return true;
}

/* Without information for the frame p->nr - 1, is there another way?  Returns DWUNW_STEPPED, or the
 * status. */
static int no_information(struct full *f)
{
	struct dwunw_pass *p = f->pass;

	if (p->nr > 1 && dwunw_pass_at_end(p, f->at.reg[DWUNW_X86_64_RSP])) {
		end_run(f);
		return dwunw_pass_ended(p, false, f->as & DWUNW_PC_STALE);
	}
	if (!(p->sample->flags & DWUNW_SAMPLE_GUESS) || !f->intact ||
	    (!follow_pointer(f) && !guess_caller(f)))
		return DWUNW_STATUS_NO_CFI;
	f->as |= DWUNW_PC_RETURN;
	if (f->at.cfa > p->sample->stale_from)
		f->as |= DWUNW_PC_STALE;
	return DWUNW_STEPPED;
}

/* Walk; with @doubts where the frame pointer of generated code is a guess.  Returns what came of
 * it, or -ENOMEM. */
static int walk(struct full *f, bool doubts)
{
	struct dwunw_pass *p = f->pass;
	const struct dwunw_regset *regs = p->sample->regs;
	int next = DWUNW_STEPPED;

	*f = (struct full){.pass = p, .doubts = doubts};
	f->at.stack = p->sample->stack;
	f->at.known = regs->known;
	memcpy(f->at.reg, regs->reg, sizeof(f->at.reg));
	f->at.cfa = f->at.reg[DWUNW_X86_64_RSP];
	f->as = regs->flags & DWUNW_EVENT_RETURN_ADDRESS ? DWUNW_PC_RETURN : 0;
	p->nr = p->taken = p->bound = 0;
	p->by_none = false;
	while (next == DWUNW_STEPPED && p->nr < p->limit) {
		next = visit(f);
		if (next == DWUNW_STATUS_NO_CFI)
			next = no_information(f);
	}
	return next;
}

/* Do the frame pointers that were followed fit to all else of the stack?  They do if it goes on by
 * call frame information to the outermost frame, or to the end of what there is of it.  Of a stack
 * that is there as a whole, no way leads beyond its end. */
static bool pointers_fit(const struct full *f, int next)
{
	const uint32_t cut = DWUNW_EVENT_STACK_LIMIT | DWUNW_EVENT_STACK_DEGRADED |
			     DWUNW_EVENT_STACK_UNBOUNDED | DWUNW_EVENT_STACK_ELSEWHERE;

	return !f->unsure && !f->guessed &&
	       (next == DWUNW_STEPPED || next == DWUNW_STATUS_ENDED || next == DWUNW_STATUS_STALE ||
		(next == DWUNW_STATUS_TRUNCATED && f->pass->sample->regs->flags & cut));
}

int dwunw_walk_full(struct dwunw_pass *p)
{
	struct full f = {.pass = p};
	int next = walk(&f, false);

	if (next >= 0 && (f.pointed || f.generated) && !pointers_fit(&f, next))
		next = walk(&f, true);
	if (next < 0)
		return next;
	if (next == DWUNW_STEPPED)
		p->status = DWUNW_STATUS_FRAME_LIMIT;
	else /* a guess is never complete */
		p->status = f.guessed ? DWUNW_STATUS_NO_CFI : (enum dwunw_status)next;
	return 0;
}
