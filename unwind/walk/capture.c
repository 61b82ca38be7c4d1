/* capture.c - from registers and stack bytes to frames: the short way, through stacks met before
 *
 * Most stacks are not new.  So a stack is taken for one that is known, the guess being made by its
 * first words: while the return addresses loaded are those of the guess, a predicted branch, the
 * next rule is known before the load is done.  Where they are not, a fork (prefix_match.h) may know
 * another stack that goes on like that.  The one that is left in the end is the current stack, with
 * its id.  What is new, or odd, is walked by walk.c.
 */
#include <errno.h>
#include <string.h>

#include "unwind/dwunw.h"
#include "unwind/tree/prefix_match.h"
#include "unwind/walk/walk.h"

/* All of the short way is one function, that its few variables stay in registers. */
#define INLINE __attribute__((always_inline)) static inline

#define AS_RETURN (DWUNW_PC_RETURN >> DWUNW_PC_SHIFT)

_Static_assert((unsigned int)DWUNW_EVENT_RETURN_ADDRESS == AS_RETURN, "the flag is the bit of as");

/* The current frame, which is fresh and whose rbp is known. */
struct view {
	const uint8_t *bytes; /* of the stack */
	uint64_t addr;
	uint64_t room; /* bytes + this is the last word */
	uint64_t at;   /* bytes + this is the word below the frame's sp */
	uint64_t bp, pc;
};

/* Among the known stacks: the one that the current stack is, as far as it was examined. */
struct guess {
	const struct dwunw_stacks *stacks;
	const struct dwunw_node *node; /* of the current frame */
	uint32_t space;
	uint32_t id;
	uint32_t nr; /* frames that lie behind */
};

/* What a step from a frame to its caller came to, besides enum dwunw_status. */
enum { STEPPED = DWUNW_STATUS_NR, ZERO, ODD };

enum outcome {
	FOUND,
	PARTED, /* none of the stacks that are known goes on like that */
	STRANGE /* it has what only walk.c can do */
};

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

INLINE uint64_t load(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* Set @v to the innermost frame of @sample.  Returns false if it is not as it must be. */
INLINE bool look(const struct dwunw_sample *sample, struct view *v)
{
	const uint32_t needed = 1u << DWUNW_X86_64_RSP | 1u << DWUNW_X86_64_RBP;
	const struct dwunw_regset *regs = sample->regs;
	const struct dwunw_stack *stack = sample->stack;
	const uint64_t at = regs->reg[DWUNW_X86_64_RSP] - stack->addr;

	v->bytes = stack->bytes;
	v->addr = stack->addr;
	v->room = stack->len - sizeof(uint64_t);
	v->at = at - sizeof(uint64_t);
	v->bp = regs->reg[DWUNW_X86_64_RBP];
	v->pc = regs->reg[DWUNW_X86_64_RIP];
	return (regs->known & needed) == needed && v->room < DWUNW_MAX_ADDR - sizeof(uint64_t) &&
	       v->addr >= DWUNW_MIN_ADDR && v->addr < DWUNW_MAX_ADDR && at <= v->room &&
	       v->addr + stack->len <= sample->stale_from;
}

/* Go on to the caller, whose return address is at bytes + @at. */
INLINE int take(struct view *v, struct dwunw_rule rule, uint64_t at)
{
	uint64_t bp;

	if (unlikely(at > v->room))
		return DWUNW_STATUS_TRUNCATED;
	v->pc = load(v->bytes + at);
	/* Without a branch, which would often be predicted wrong: if rbp has no slot, the return
	 * address is loaded once more. */
	bp = load(v->bytes + at + 8 + 8 * (int64_t)rule.bp_slot);
	v->bp = rule.kind & 1 ? bp : v->bp;
	v->at = at;
	return STEPPED;
}

/* Go on to the caller by @rule, which is of @kind: as plain_step() in fast.c. */
INLINE int step(struct view *v, struct dwunw_rule rule, unsigned int kind)
{
	uint64_t at;

	if (likely(kind <= DWUNW_RULE_SP_BP))
		return take(v, rule, v->at + (uint64_t)(int64_t)rule.cfa_off);
	if (kind == DWUNW_RULE_END)
		return DWUNW_STATUS_ENDED;
	if (kind > DWUNW_RULE_BP_BP)
		return kind == DWUNW_RULE_ZERO ? ZERO : ODD;
	at = v->bp + (uint64_t)(int64_t)rule.cfa_off - v->addr - sizeof(uint64_t);
	if ((int64_t)(at - v->at) < -8 * (int64_t)rule.bp_slot)
		return ODD;
	return take(v, rule, at);
}

/* Have a look for a fork; where there is none, *parting tells what it would be. */
INLINE const struct dwunw_fork *find_fork(const struct guess *g, uint64_t word, uint32_t nr,
					  struct dwunw_fork *parting)
{
	const struct dwunw_fork *fork =
		dwunw_prefix_match_find(&g->stacks->forks, word, g->id, nr, g->space);

	if (unlikely(!fork))
		*parting = (struct dwunw_fork){
			.word = word, .from = g->id, .nr = nr, .space = g->space};
	return fork;
}

/* Guess by the innermost frame, looked up @as, and what is around it. */
INLINE bool begin(struct guess *g, const struct view *v, uint32_t as, struct dwunw_fork *parting)
{
	const uint64_t word = dwunw_fork_first(v->pc ^ as, v->addr + v->at, v->room,
					       load(v->bytes + (v->at + 8)));
	const struct dwunw_fork *fork = find_fork(g, word, 0, parting);

	if (unlikely(!fork))
		return false;
	g->node = &g->stacks->tree.nodes[fork->to];
	if (unlikely(g->node->pc != v->pc || g->node->rule.as != as)) {
		*parting = (struct dwunw_fork){.word = word, .space = g->space};
		return false;
	}
	g->id = fork->to;
	return true;
}

/* Walk on while the return addresses are those of the stack guessed.  @kind: of the rule.  Returns
 * what the last step came to. */
INLINE int climb(struct guess *g, struct view *v, unsigned int kind)
{
	const char *const nodes = (const char *)g->stacks->tree.nodes;
	const struct dwunw_node *node = g->node;
	uint32_t nr = g->nr;
	int got;

	do {
		got = step(v, node->rule, kind);
		if (unlikely(got != STEPPED))
			break;
		nr++;
		node = (const struct dwunw_node *)(nodes + node->up);
		kind = node->rule.kind;
	} while (likely(node->pc == v->pc));
	g->node = node;
	g->nr = nr;
	return got;
}

/* Walk on from the innermost frame while the stack is known.  Sets *got to what ended it, unless
 * the stack parted. */
INLINE bool follow(struct guess *g, struct view *v, int *got, struct dwunw_fork *parting)
{
	unsigned int kind = g->node->rule.kind & ~DWUNW_NOT_RETURN;
	const struct dwunw_fork *fork;

	while ((*got = climb(g, v, kind)) == STEPPED) {
		if (!v->pc) {
			*got = ZERO;
			break;
		}
		fork = find_fork(g, v->pc, g->nr, parting);
		if (unlikely(!fork))
			return false;
		g->id = fork->to;
		g->node = &g->stacks->tree.nodes[fork->at];
		kind = g->node->rule.kind;
	}
	return true;
}

/* Of the known stacks that have these frames, find the one that ends here for the reason @got. */
INLINE enum outcome end(struct guess *g, uint32_t event_flags, int got, struct dwunw_result *result,
			struct dwunw_fork *parting)
{
	const struct dwunw_node *const nodes = g->stacks->tree.nodes;
	const struct dwunw_fork *fork;
	uint32_t root;

	/* Zero is the outermost frame's return address, but also what a missing page reads as. */
	if (got == ODD || (got == ZERO && event_flags & DWUNW_EVENT_STACK_FAULT))
		return STRANGE;
	if (got == ZERO) {
		got = DWUNW_STATUS_ENDED;
	} else { /* it had a frame, but that has no caller */
		if (got == DWUNW_STATUS_TRUNCATED)
			got = (int)dwunw_truncated(event_flags);
		g->node = &nodes[dwunw_stack_tree_parent(g->node)];
		g->nr++;
	}
	root = dwunw_stack_tree_root((enum dwunw_status)got);
	if (unlikely(g->node != &nodes[root])) {
		fork = find_fork(g, root, g->nr | DWUNW_FORK_END, parting);
		if (!fork)
			return PARTED;
		g->id = fork->to;
	}
	*result = (struct dwunw_result){
		.id = g->id, .status = (enum dwunw_status)got, .nr_frames = g->nr};
	return FOUND;
}

INLINE enum outcome find(const struct dwunw_space *space, const struct dwunw_sample *sample,
			 struct dwunw_result *result, struct dwunw_fork *parting)
{
	const uint32_t flags = sample->regs->flags;
	struct guess g = {.stacks = space->stacks, .space = (uint32_t)space->serial};
	struct view v;
	int got;

	if (unlikely(!look(sample, &v)))
		return STRANGE;
	if (unlikely(!begin(&g, &v, flags & DWUNW_EVENT_RETURN_ADDRESS, parting)))
		return PARTED;
	if (unlikely(!follow(&g, &v, &got, parting)))
		return PARTED;
	return end(&g, flags, got, result, parting);
}

/* Walk over the stack of @sample, and remember it as what @parting leads to, if it parted. */
__attribute__((noinline)) static int walk(struct dwunw_space *space,
					  const struct dwunw_sample *sample, uint32_t limit,
					  struct dwunw_result *result, struct dwunw_fork *parting)
{
	struct dwunw_stacks *stacks = space->stacks;
	int err = dwunw_walk(space, sample, limit, result);

	if (err || !parting)
		return err;
	parting->to = result->id;
	dwunw_prefix_match_learn(&stacks->forks, &stacks->tree, parting);
	return 0;
}

/* dwunw_capture(), whatever the caller asks for. */
__attribute__((noinline)) static int capture(struct dwunw_space *space,
					     const struct dwunw_sample *sample,
					     struct dwunw_frame *frames, size_t max_frames,
					     struct dwunw_result *result)
{
	const uint32_t limit = max_frames && max_frames < DWUNW_MAX_FRAMES ? (uint32_t)max_frames
									   : DWUNW_MAX_FRAMES;
	enum outcome outcome = STRANGE;
	struct dwunw_result known;
	struct dwunw_fork parting;
	int err;

	if (frames && !max_frames)
		return -EINVAL;
	if (!sample->history && !(sample->flags & DWUNW_SAMPLE_FULL))
		outcome = find(space, sample, &known, &parting);
	if (outcome != FOUND || known.nr_frames > limit) {
		err = walk(space, sample, limit, &known, outcome == PARTED ? &parting : NULL);
		if (err)
			return err;
	}
	*result = known;
	if (frames)
		dwunw_stack_frames(space->dw, result->id, frames, max_frames);
	return 0;
}

int dwunw_capture(struct dwunw_space *space, const struct dwunw_sample *sample,
		  struct dwunw_frame *frames, size_t max_frames, struct dwunw_result *result)
{
	struct dwunw_fork parting;
	enum outcome outcome;

	if (frames || max_frames || sample->history || sample->flags & DWUNW_SAMPLE_FULL)
		return capture(space, sample, frames, max_frames, result);
	outcome = find(space, sample, result, &parting);
	if (likely(outcome == FOUND))
		return 0;
	return walk(space, sample, DWUNW_MAX_FRAMES, result, outcome == PARTED ? &parting : NULL);
}
