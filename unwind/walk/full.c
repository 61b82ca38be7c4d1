/* full.c - the walk with all registers and any expression: what the hot loop must agree with */
#include <errno.h>

#include "unwind/elf/elf_util.h"
#include "unwind/walk/step.h"
#include "unwind/walk/walk.h"

/*
 * Guesses, where there is no call frame information, in three ways, the surer ones first: a
 * function that was just called has its return address at rsp; one that keeps a frame pointer has
 * it beside the caller's; and any word that points just behind a call may be one.
 */

#define MAX_SCAN 512 /* words */

/* What speaks for @word being a return address. */
enum likeness {
	NOT_CODE,
	IN_MAPPING,   /* what is there is not known */
	KNOWN_TO_CFI, /* code of a function, whose bytes are not available */
	BEHIND_CALL,
};

static enum likeness likeness_of(const struct dwunw_pass *p, uint64_t word)
{
	const struct dwunw_segment *segment = word ? dwunw_space_find(p->space, word - 1) : NULL;
	const struct dwunw_cfi_row *row;
	int calls;

	if (!segment)
		return NOT_CODE;
	if (!segment->module)
		return IN_MAPPING;
	calls = dwunw_code_calls(segment->module->elf, word - segment->bias);
	if (calls >= 0)
		return calls ? BEHIND_CALL : NOT_CODE;
	if (dwunw_cfi_find(segment->module->cfi, word - 1 - segment->bias, &row) ||
	    row->kind == DWUNW_CFI_NONE)
		return IN_MAPPING;
	return KNOWN_TO_CFI;
}

/* Let @w be at the caller whose return address is below @cfa, with rbp if @bp is not NULL. */
static bool go_to(struct dwunw_walk *w, uint64_t cfa, uint64_t ra, const uint64_t *bp)
{
	if (cfa <= w->cfa)
		return false;
	w->known = 1u << DWUNW_X86_64_RSP | 1u << DWUNW_X86_64_RIP;
	w->reg[DWUNW_X86_64_RIP] = ra;
	w->reg[DWUNW_X86_64_RSP] = w->cfa = cfa;
	if (bp) {
		w->reg[DWUNW_X86_64_RBP] = *bp;
		w->known |= 1u << DWUNW_X86_64_RBP;
	}
	return true;
}

static bool by_frame_pointer(const struct dwunw_pass *p, struct dwunw_walk *w)
{
	uint64_t at = w->reg[DWUNW_X86_64_RBP], bp, ra;

	if (!(w->known & 1u << DWUNW_X86_64_RBP) || at < w->reg[DWUNW_X86_64_RSP] ||
	    dwunw_stack_read(w->stack, at, sizeof(bp), &bp) ||
	    dwunw_stack_read(w->stack, at + sizeof(bp), sizeof(ra), &ra) ||
	    likeness_of(p, ra) == NOT_CODE)
		return false;
	return go_to(w, at + 2 * sizeof(bp), ra, &bp);
}

static bool by_scan(const struct dwunw_pass *p, struct dwunw_walk *w)
{
	uint64_t at = w->reg[DWUNW_X86_64_RSP], ra;

	for (int i = 0; i < MAX_SCAN; i++, at += sizeof(ra)) {
		if (dwunw_stack_read(w->stack, at, sizeof(ra), &ra))
			return false;
		if (likeness_of(p, ra) == BEHIND_CALL)
			return go_to(w, at + sizeof(ra), ra, NULL);
	}
	return false;
}

static bool at_rsp(const struct dwunw_pass *p, struct dwunw_walk *w)
{
	uint64_t bp = w->reg[DWUNW_X86_64_RBP], ra;

	return !dwunw_stack_read(w->stack, w->reg[DWUNW_X86_64_RSP], sizeof(ra), &ra) &&
	       likeness_of(p, ra) >= KNOWN_TO_CFI &&
	       go_to(w, w->reg[DWUNW_X86_64_RSP] + sizeof(ra), ra,
		     w->known & 1u << DWUNW_X86_64_RBP ? &bp : NULL);
}

/* Go on from the frame p->nr - 1, which @w stands at, to a likely caller.  Returns false if none is
 * found; then @w is as it was. */
static bool guess_caller(const struct dwunw_pass *p, struct dwunw_walk *w)
{
	if (!(w->known & 1u << DWUNW_X86_64_RSP))
		return false;
	if (p->nr == 1 && at_rsp(p, w))
		return true;
	return by_frame_pointer(p, w) || by_scan(p, w);
}

/* A walk from the current frame outwards. */
struct full {
	struct dwunw_pass *pass;
	struct dwunw_walk at; /* the frame */
	uint32_t as;	      /* what its pc is looked up as */
	bool guessed;	      /* the frame, or one that led to it, is a guess */
	bool intact;	      /* no step failed halfway: the registers are the frame's */
};

/* Find the place of the frame p->nr, which @f is at.  Returns 0 or -ENOMEM. */
static int find_place(struct full *f, uint32_t *number)
{
	struct dwunw_pass *p = f->pass;
	uint64_t pc = f->at.reg[DWUNW_X86_64_RIP];
	struct dwunw_pc_slot *slot =
		dwunw_pc_cache_find(&p->space->pcs, &p->stacks->seed, pc, f->as);
	const struct dwunw_place *place;

	if (!slot)
		slot = dwunw_locate(p->space, pc, f->as);
	if (!slot)
		return -ENOMEM;
	*number = slot->place & ~DWUNW_PC_AS;
	if (!f->guessed)
		return 0;
	place = &p->stacks->places.all[*number];
	return dwunw_frame_table_intern(
		&p->stacks->places,
		&(struct dwunw_frame){place->pc, place->addr, place->module,
				      place->flags | DWUNW_FRAME_FLAG_GUESSED},
		number);
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

/* dwunw_step(), that also finds out whether bytes older than the event had to do with it. */
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
	return f->guessed && row->kind == DWUNW_CFI_SIMPLE && !(f->at.known >> row->cfa_reg & 1);
}

/* Describe the frame that @f is at and go on to its caller.  Returns DWUNW_STEPPED, why there is no
 * caller, or -ENOMEM. */
static int visit(struct full *f)
{
	struct dwunw_pass *p = f->pass;
	const struct dwunw_place *place;
	const struct dwunw_cfi_row *row;
	uint32_t number;
	bool uncalled;
	int next;

	if (find_place(f, &number))
		return -ENOMEM;
	p->marks[p->nr].node = DWUNW_NO_NODE;
	p->runs[p->nr] = (struct dwunw_run){p->nr, number, DWUNW_NO_SLOT, 0};
	p->nr_runs = ++p->nr;
	place = &p->stacks->places.all[number];
	f->at.bias = place->pc - place->addr;
	if (dwunw_locate_row(p->space, place, f->as, &row, &uncalled))
		return -ENOMEM;
	f->intact = !row || row->kind == DWUNW_CFI_NONE || needs_lost_register(f, row);
	if (f->intact)
		return DWUNW_STATUS_NO_CFI;
	if (row->kind == DWUNW_CFI_OUTERMOST)
		return dwunw_pass_ended(p, false, f->as & DWUNW_PC_STALE);
	if (row->kind == DWUNW_CFI_SWITCH &&
	    !(row->whole && p->sample->regs->flags & DWUNW_EVENT_STACK_JOINED))
		return DWUNW_STATUS_NOT_CODE;
	next = step(f, row);
	f->as = (f->as & DWUNW_PC_STALE) | (row->signal ? 0 : DWUNW_PC_RETURN);
	if (next != DWUNW_STEPPED)
		return next;
	if (!f->at.reg[DWUNW_X86_64_RIP])
		return dwunw_pass_ended(p, true, f->as & DWUNW_PC_STALE);
	/* Nor will it return: where its return address would be is something else. */
	if (uncalled && !dwunw_space_find(p->space, f->at.reg[DWUNW_X86_64_RIP]))
		return dwunw_pass_ended(p, false, f->as & DWUNW_PC_STALE);
	if (p->nr < p->limit && !dwunw_pass_is_code(p, f->at.reg[DWUNW_X86_64_RIP], f->as) &&
	    !dwunw_pass_at_end(p, f->at.reg[DWUNW_X86_64_RSP]))
		return DWUNW_STATUS_NOT_CODE;
	return next;
}

/* Without information for the frame p->nr - 1, is there another way?  Returns DWUNW_STEPPED, or the
 * status. */
static int no_information(struct full *f)
{
	struct dwunw_pass *p = f->pass;

	if (p->nr > 1 && dwunw_pass_at_end(p, f->at.reg[DWUNW_X86_64_RSP]))
		return dwunw_pass_ended(p, false, f->as & DWUNW_PC_STALE);
	if (!(p->sample->flags & DWUNW_SAMPLE_GUESS) || !f->intact || !guess_caller(p, &f->at))
		return DWUNW_STATUS_NO_CFI;
	f->guessed = true;
	f->as |= DWUNW_PC_RETURN;
	if (f->at.cfa > p->sample->stale_from)
		f->as |= DWUNW_PC_STALE;
	return DWUNW_STEPPED;
}

int dwunw_walk_full(struct dwunw_pass *p)
{
	const struct dwunw_regset *regs = p->sample->regs;
	struct full f = {.pass = p, .at = {.stack = p->sample->stack, .known = regs->known}};
	int next = DWUNW_STEPPED;

	memcpy(f.at.reg, regs->reg, sizeof(f.at.reg));
	f.at.cfa = f.at.reg[DWUNW_X86_64_RSP];
	f.as = regs->flags & DWUNW_EVENT_RETURN_ADDRESS ? DWUNW_PC_RETURN : 0;
	p->nr = p->taken = p->bound = 0;
	p->by_none = false;
	while (next == DWUNW_STEPPED && p->nr < p->limit) {
		next = visit(&f);
		if (next == DWUNW_STATUS_NO_CFI)
			next = no_information(&f);
	}
	if (next < 0)
		return next;
	if (next == DWUNW_STEPPED)
		p->status = DWUNW_STATUS_FRAME_LIMIT;
	else /* a guess is never complete */
		p->status = f.guessed ? DWUNW_STATUS_NO_CFI : (enum dwunw_status)next;
	return 0;
}
