/* guess.c - see guess.h */
#include "unwind/walk/guess.h"

#include "unwind/elf/elf_util.h"

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

bool dwunw_by_frame_pointer(const struct dwunw_pass *p, struct dwunw_walk *w)
{
	uint64_t at = w->reg[DWUNW_X86_64_RBP], bp, ra;

	if (!(w->known & 1u << DWUNW_X86_64_RBP) || at < w->reg[DWUNW_X86_64_RSP] ||
	    dwunw_stack_read(w->stack, at, sizeof(bp), &bp) ||
	    dwunw_stack_read(w->stack, at + sizeof(bp), sizeof(ra), &ra) ||
	    likeness_of(p, ra) == NOT_CODE)
		return false;
	return go_to(w, at + 2 * sizeof(bp), ra, &bp);
}

bool dwunw_by_frame_size(const struct dwunw_pass *p, struct dwunw_walk *w, uint32_t size)
{
	const uint64_t at = w->reg[DWUNW_X86_64_RSP] + size;
	uint64_t bp, ra;

	if (dwunw_stack_read(w->stack, at - sizeof(bp), sizeof(bp), &bp) ||
	    dwunw_stack_read(w->stack, at, sizeof(ra), &ra) || likeness_of(p, ra) == NOT_CODE)
		return false;
	return go_to(w, at + sizeof(ra), ra, &bp);
}

/* Is @at a frame pointer beside which is the return address of a call from code with call frame
 * information? */
static bool is_entry(const struct dwunw_pass *p, const struct dwunw_stack *stack, uint64_t at)
{
	uint64_t ra;

	return !(at % sizeof(ra)) && !dwunw_stack_read(stack, at + sizeof(ra), sizeof(ra), &ra) &&
	       likeness_of(p, ra) >= KNOWN_TO_CFI;
}

bool dwunw_by_saved_pointer(const struct dwunw_pass *p, struct dwunw_walk *w)
{
	const uint64_t end = w->stack->addr + w->stack->len;
	uint64_t at = w->reg[DWUNW_X86_64_RSP], found = end, word, ra;

	/* of several the nearest: what is saved below it is of a frame that it called */
	for (; at < found && !dwunw_stack_read(w->stack, at, sizeof(word), &word);
	     at += sizeof(word))
		if (word > at && word < found && is_entry(p, w->stack, word))
			found = word;
	if (found == end || dwunw_stack_read(w->stack, found, sizeof(word), &word) ||
	    dwunw_stack_read(w->stack, found + sizeof(word), sizeof(ra), &ra))
		return false;
	return go_to(w, found + 2 * sizeof(word), ra, &word);
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

bool dwunw_guess_caller(const struct dwunw_pass *p, struct dwunw_walk *w)
{
	if (!(w->known & 1u << DWUNW_X86_64_RSP))
		return false;
	if (p->nr == 1 && at_rsp(p, w))
		return true;
	return dwunw_by_frame_pointer(p, w) || by_scan(p, w);
}
