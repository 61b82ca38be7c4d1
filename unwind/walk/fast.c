/* fast.c - the hot loop: from frame to frame with rsp, rbp and pc alone
 *
 * Each frame has a node that it is guessed to be: of the same place, and below the nodes of the
 * callers that this place had last.  While a loaded return address is that of the node's parent, a
 * predicted branch, the next rule is known before the load is done, and what is left in the end is
 * to see that the guess reaches the root.  A wrong guess costs a look into the cache.
 */
#include <errno.h>
#include <string.h>

#include "unwind/walk/history.h"
#include "unwind/walk/step.h"

/* The current frame. */
struct cursor {
	uint64_t sp, bp;
	uint64_t pc;   /* of the next frame */
	uint64_t room; /* a word at stack->addr + this is the last that is there, and fresh */
	uint32_t bits; /* DWUNW_MARK_BP_KNOWN, and what the next pc is looked up as */
};

/* What came of a step, besides enum dwunw_status. */
enum {
	STEPPED = DWUNW_STATUS_NR,
	JUMPED, /* likewise, but what the node's parent says has nothing to do with it */
	GIVE_UP,
	ZERO, /* there is no frame here, as the return address was 0 */
	MET,  /* the frame is in the history */
	LIMIT,
};

static inline uint64_t load(const struct dwunw_stack *stack, uint64_t at)
{
	uint64_t word;

	memcpy(&word, stack->bytes + at, sizeof(word));
	return word;
}

static uint64_t end_of(const struct dwunw_stack *stack)
{
	return stack->addr + stack->len;
}

/* Can the loop walk here?  Sets @c to frame 0, its pc being the next one to look up. */
static bool begin(const struct dwunw_pass *p, struct cursor *c)
{
	const struct dwunw_regset *regs = p->sample->regs;
	const struct dwunw_stack *stack = p->sample->stack;
	uint64_t fresh_end = end_of(stack);

	if (p->sample->stale_from < fresh_end)
		fresh_end = p->sample->stale_from;
	c->sp = regs->reg[DWUNW_X86_64_RSP];
	c->bp = regs->reg[DWUNW_X86_64_RBP];
	c->pc = regs->reg[DWUNW_X86_64_RIP];
	c->bits = regs->known >> DWUNW_X86_64_RBP & DWUNW_MARK_BP_KNOWN;
	if (regs->flags & DWUNW_EVENT_RETURN_ADDRESS)
		c->bits |= DWUNW_PC_RETURN;
	c->room = fresh_end - stack->addr - sizeof(uint64_t);
	return regs->known >> DWUNW_X86_64_RSP & 1 && stack->addr >= DWUNW_MIN_ADDR &&
	       stack->addr < DWUNW_MAX_ADDR && stack->len < DWUNW_MAX_ADDR &&
	       c->sp >= stack->addr && c->sp <= end_of(stack) &&
	       fresh_end >= stack->addr + sizeof(uint64_t);
}

/* Take a step that does not fit a rule, in the hope that rsp, rbp and pc are enough.  They are if
 * rbp is known after it: then no register that is not known here was used for it. */
static int slow_step(const struct dwunw_pass *p, const struct dwunw_place *place, struct cursor *c)
{
	const struct dwunw_stack *stack = p->sample->stack;
	const uint32_t needed =
		1u << DWUNW_X86_64_RSP | 1u << DWUNW_X86_64_RBP | 1u << DWUNW_X86_64_RIP;
	struct dwunw_walk w = {.stack = stack, .known = needed, .cfa = c->sp};
	const struct dwunw_cfi_row *row;
	bool uncalled;

	if (!(c->bits & DWUNW_MARK_BP_KNOWN) || p->sample->stale_from < end_of(stack))
		return GIVE_UP;
	if (dwunw_locate_row(p->space, place, c->bits, &row, &uncalled))
		return -ENOMEM;
	if (!row || uncalled || (row->kind != DWUNW_CFI_SIMPLE && row->kind != DWUNW_CFI_FULL))
		return GIVE_UP;
	w.bias = place->pc - place->addr;
	w.reg[DWUNW_X86_64_RSP] = c->sp;
	w.reg[DWUNW_X86_64_RBP] = c->bp;
	w.reg[DWUNW_X86_64_RIP] = place->pc;
	c->bits = DWUNW_MARK_BP_KNOWN | (row->signal ? 0 : DWUNW_PC_RETURN);
	if (dwunw_step(&w, row) != DWUNW_STEPPED || (w.known & needed) != needed ||
	    w.cfa > end_of(stack) || w.reg[DWUNW_X86_64_RSP] <= c->sp)
		return GIVE_UP;
	c->sp = w.reg[DWUNW_X86_64_RSP];
	c->bp = w.reg[DWUNW_X86_64_RBP];
	c->pc = w.reg[DWUNW_X86_64_RIP];
	return JUMPED;
}

/* The CFA by the word at rbp + cfa_off. */
static int deref_cfa(const struct dwunw_pass *p, struct dwunw_rule rule, const struct cursor *c,
		     uint64_t *cfa)
{
	const struct dwunw_stack *stack = p->sample->stack;
	uint64_t addr = c->bp + (uint64_t)(int64_t)rule.cfa_off, at = addr - stack->addr;

	if (addr < c->sp || p->sample->stale_from < end_of(stack))
		return GIVE_UP;
	if (at > c->room)
		return DWUNW_STATUS_TRUNCATED;
	*cfa = load(stack, at);
	return STEPPED;
}

/* Find the CFA by a rule of any kind; p->nr is the frame.  Returns STEPPED if that is it, JUMPED if
 * all of the step was taken, or why there is no caller. */
static int find_cfa(struct dwunw_pass *p, const struct dwunw_place *place, struct cursor *c,
		    uint64_t *cfa)
{
	struct dwunw_rule rule = place->rule;

	if (rule.kind >= DWUNW_RULE_BP && rule.kind <= DWUNW_RULE_DEREF_BP &&
	    !(c->bits & DWUNW_MARK_BP_KNOWN))
		return DWUNW_STATUS_TRUNCATED; /* its slot was above the bytes */
	switch (rule.kind) {
	case DWUNW_RULE_SP:
	case DWUNW_RULE_SP_BP:
		*cfa = c->sp + (uint64_t)(int64_t)rule.cfa_off;
		return STEPPED;
	case DWUNW_RULE_BP:
	case DWUNW_RULE_BP_BP:
		*cfa = c->bp + (uint64_t)(int64_t)rule.cfa_off;
		return STEPPED;
	case DWUNW_RULE_DEREF:
	case DWUNW_RULE_DEREF_BP:
		return deref_cfa(p, rule, c, cfa);
	case DWUNW_RULE_PLT:
		*cfa = c->sp + 8 + ((int)(place->pc & 15) >= rule.cfa_off ? 8 : 0);
		return STEPPED;
	case DWUNW_RULE_POPPED:
		*cfa = c->sp + (uint16_t)rule.cfa_off;
		p->bound = p->nr + 1;
		if (*cfa + (uint64_t)(8 * (int64_t)(rule.cfa_off >> 16)) < p->sample->stack->addr)
			return STEPPED;
		return GIVE_UP;
	case DWUNW_RULE_END:
		return DWUNW_STATUS_ENDED;
	case DWUNW_RULE_NONE:
		return DWUNW_STATUS_NO_CFI;
	case DWUNW_RULE_ZERO:
		return ZERO;
	default:
		p->bound = p->nr + 1;
		return slow_step(p, place, c);
	}
}

/* Load the return address, and rbp if it is saved, below @cfa, where both are. */
static inline void take_words(const struct dwunw_stack *stack, struct dwunw_rule rule, uint64_t cfa,
			      struct cursor *c)
{
	uint64_t at = cfa - sizeof(uint64_t) - stack->addr;
	uint64_t bp = load(stack, at + (uint64_t)(8 * (int64_t)rule.bp_slot + 8));

	c->pc = load(stack, at);
	/* Without a branch, which would often be predicted wrong: if rbp has no slot, the return
	 * address is loaded once more. */
	c->bp = rule.kind & 1 ? bp : c->bp;
	c->bits |= (rule.kind & DWUNW_MARK_BP_KNOWN) | DWUNW_PC_RETURN;
	c->sp = cfa;
}

/* take_words() where the slot of rbp counts from rbp itself. */
static int deref_words(const struct dwunw_stack *stack, struct dwunw_rule rule, uint64_t cfa,
		       struct cursor *c)
{
	uint64_t slot = c->bp + (uint64_t)(8 * (int64_t)rule.bp_slot);

	if (slot < c->sp || slot > cfa - 2 * sizeof(uint64_t) || cfa - c->sp < 2 * sizeof(uint64_t))
		return GIVE_UP;
	c->bp = load(stack, slot - stack->addr);
	c->pc = load(stack, cfa - sizeof(uint64_t) - stack->addr);
	c->sp = cfa;
	c->bits |= DWUNW_PC_RETURN;
	return STEPPED;
}

/* Go on to the caller of a frame at @place, which may be of any kind and have any problem. */
static int odd_step(struct dwunw_pass *p, const struct dwunw_place *place, struct cursor *c)
{
	const struct dwunw_stack *stack = p->sample->stack;
	uint64_t cfa = 0, at;
	int got = find_cfa(p, place, c, &cfa);

	if (got != STEPPED)
		return got;
	at = cfa - sizeof(uint64_t) - stack->addr;
	if (cfa <= c->sp || cfa - sizeof(uint64_t) < stack->addr)
		return DWUNW_STATUS_BAD_MEMORY;
	if (at > c->room) {
		c->room = stack->len - sizeof(uint64_t);
		if (at > c->room)
			return DWUNW_STATUS_TRUNCATED;
		c->bits |= DWUNW_PC_STALE; /* it is there, and stale, as all from here on */
	}
	if (place->rule.kind == DWUNW_RULE_DEREF_BP)
		return deref_words(stack, place->rule, cfa, c);
	/* What it reads below rsp would not be what the history compares. */
	if (cfa - c->sp < (uint64_t)(-8 * (int64_t)place->rule.bp_slot))
		return GIVE_UP;
	take_words(stack, place->rule, cfa, c);
	return STEPPED;
}

/* The same for what nearly all frames are.  Returns false, with nothing done, for any other. */
static inline bool plain_step(const struct dwunw_stack *stack, const struct dwunw_place *place,
			      struct cursor *c)
{
	struct dwunw_rule rule = place->rule;
	uint64_t cfa = c->sp + (uint64_t)(int64_t)rule.cfa_off;

	if (unlikely(rule.kind > DWUNW_RULE_SP_BP)) {
		cfa = c->bp + (uint64_t)(int64_t)rule.cfa_off;
		if (rule.kind > DWUNW_RULE_BP_BP || !(c->bits & DWUNW_MARK_BP_KNOWN) ||
		    (int64_t)(cfa - c->sp) < -8 * (int64_t)rule.bp_slot)
			return false;
	}
	if (unlikely(cfa - sizeof(uint64_t) - stack->addr > c->room))
		return false;
	take_words(stack, rule, cfa, c);
	return true;
}

/* Find the place of frame p->nr at @c by its pc; or see why there is no such frame.  @got is what
 * came of the step that led there. */
__attribute__((noinline)) static int look_up(struct dwunw_pass *p, const struct cursor *c, int got)
{
	if (got == ZERO)
		p->nr--; /* it was taken for a frame */
	if (got != STEPPED && got != JUMPED)
		return got;
	if (!c->pc)
		return ZERO;
	if (p->nr == p->limit)
		return LIMIT;
	return dwunw_pass_run(p, c->pc, c->sp, c->bits & DWUNW_PC_AS) ? -ENOMEM : STEPPED;
}

/* Walk on from frame 0 at @at, whose run is there.  @keep: for a history.  Sets p->nr, and @at to
 * the last frame.  Returns what came of it in the end. */
static inline int walk(struct dwunw_pass *p, struct cursor *at, const bool keep)
{
	const struct dwunw_stack stack = *p->sample->stack;
	const struct dwunw_node *nodes = p->stacks->tree.nodes;
	const uint64_t take_from = keep ? dwunw_history_begin(p) : UINT64_MAX;
	const struct dwunw_mark *const limit = p->marks + p->limit;
	struct dwunw_mark *mark = p->marks;
	struct cursor c = *at; /* a copy stays in registers */
	int got = STEPPED;

	while (got == STEPPED) {
		const struct dwunw_place *places = p->stacks->places.all;
		const struct dwunw_place *place = &places[p->runs[p->nr_runs - 1].place];
		uint32_t node = mark->node;

		do {
			mark->node = node;
			if (keep) {
				mark->sp = c.sp;
				mark->bp = c.bp;
				mark->bits = c.bits;
				p->nr = (uint32_t)(mark - p->marks);
				if (unlikely(c.sp >= take_from) &&
				    dwunw_history_meets(p, mark, (uint32_t)(place - places)))
					return MET;
			}
			mark++;
			got = STEPPED;
			if (unlikely(!plain_step(&stack, place, &c))) {
				*at = c;
				p->nr = (uint32_t)(mark - p->marks) - 1;
				got = odd_step(p, place, at);
				c = *at;
			}
			node = dwunw_stack_tree_parent(&nodes[node]);
			place = &places[nodes[node].place];
		} while (likely(place->pc == c.pc && place->rule.as == c.bits >> DWUNW_PC_SHIFT &&
				got == STEPPED && mark != limit));
		*at = c;
		p->nr = (uint32_t)(mark - p->marks);
		got = look_up(p, at, got);
	}
	return got;
}

static int finish(struct dwunw_pass *p, int got, const struct cursor *c)
{
	bool stale = c->bits & DWUNW_PC_STALE;

	switch (got) {
	case -ENOMEM:
		return -ENOMEM;
	case GIVE_UP:
		return DWUNW_WALK_FULL;
	case MET:
		return 0;
	case ZERO:
		p->status = dwunw_pass_ended(p, true, stale);
		return 0;
	case LIMIT:
		p->status = DWUNW_STATUS_FRAME_LIMIT;
		return 0;
	case DWUNW_STATUS_ENDED:
		p->status = dwunw_pass_ended(p, false, stale);
		return 0;
	case DWUNW_STATUS_NO_CFI:
		p->by_none = true;
		p->status = DWUNW_STATUS_NO_CFI;
		if (p->nr > 1 && dwunw_pass_at_end(p, c->sp))
			p->status = dwunw_pass_ended(p, false, stale);
		else if (p->sample->flags & DWUNW_SAMPLE_GUESS ||
			 dwunw_space_generated(p->space, c->pc, c->bits) ||
			 (p->nr > 1 && !dwunw_pass_is_code(p, c->pc, c->bits)))
			return DWUNW_WALK_FULL;
		return 0;
	default:
		p->status = (enum dwunw_status)got;
		return 0;
	}
}

int dwunw_walk_fast(struct dwunw_pass *p)
{
	struct cursor c;
	int got;

	if (!begin(p, &c))
		return DWUNW_WALK_FULL;
	if (dwunw_pass_run(p, c.pc, c.sp, c.bits & DWUNW_PC_AS))
		return -ENOMEM;
	got = p->sample->history ? walk(p, &c, true) : walk(p, &c, false);
	return finish(p, got, &c);
}
