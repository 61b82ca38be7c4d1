/* walk.c - see walk.h */
#include "unwind/walk/walk.h"

#include <errno.h>

#include "unwind/walk/history.h"

static void forget_slots(struct dwunw_pass *p)
{
	for (uint32_t i = 0; i < p->nr_runs; i++)
		p->runs[i].slot = DWUNW_NO_SLOT;
}

int dwunw_pass_look_up(struct dwunw_pass *p, uint64_t pc, uint32_t as, struct dwunw_run *run)
{
	struct dwunw_space *space = p->space;
	struct dwunw_pc_slot *slot = dwunw_pc_cache_find(&space->pcs, &p->stacks->seed, pc, as);

	if (__builtin_expect(!slot, 0)) {
		slot = dwunw_locate(space, pc, as);
		if (!slot)
			return -ENOMEM;
		forget_slots(p); /* they may have moved */
	}
	run->place = slot->place & ~DWUNW_PC_AS;
	run->slot = (uint32_t)(slot - space->pcs.slots);
	p->marks[p->nr].node = slot->node;
	return 0;
}

/* Go down from @node, the caller of the run's last frame, which is @end - 1, to its first. */
static int descend(struct dwunw_pass *p, const struct dwunw_run *run, uint32_t end, uint32_t *node)
{
	struct dwunw_stack_tree *tree = &p->stacks->tree;

	while (end-- > run->first) {
		uint32_t guess = p->marks[end].node;
		uint32_t place = guess ? tree->nodes[guess].place : run->place;
		int err = dwunw_stack_tree_child(tree, *node, place, node);

		if (err)
			return err;
		p->marks[end].node = *node;
	}
	return 0;
}

int dwunw_pass_finish_runs(struct dwunw_pass *p, uint32_t node, uint32_t *id)
{
	uint32_t end = p->nr;
	int err;

	for (uint32_t i = p->nr_runs; i-- > 0;) {
		const struct dwunw_run *run = &p->runs[i];

		if (run->first >= end) /* its frames were taken over */
			continue;
		if (dwunw_stack_tree_parent(&p->stacks->tree.nodes[p->marks[end - 1].node]) ==
		    node) {
			node = p->marks[run->first].node;
		} else {
			err = descend(p, run, end, &node);
			if (err)
				return err;
			if (run->slot != DWUNW_NO_SLOT)
				p->space->pcs.slots[run->slot].node = node;
		}
		p->stacks->guesses[run->guess] =
			(struct dwunw_guess){node, (uint32_t)p->space->serial};
		end = run->first;
	}
	*id = node;
	return 0;
}

bool dwunw_pass_at_end(const struct dwunw_pass *p, uint64_t sp)
{
	const uint32_t cut =
		DWUNW_EVENT_STACK_LIMIT | DWUNW_EVENT_STACK_DEGRADED | DWUNW_EVENT_STACK_UNBOUNDED;
	const struct dwunw_stack *stack = p->sample->stack;
	uint64_t end = stack->addr + stack->len;

	return !(p->sample->regs->flags & cut) && sp <= end && end - sp < sizeof(uint64_t);
}

bool dwunw_pass_is_code(const struct dwunw_pass *p, uint64_t pc, uint32_t as)
{
	/* what a signal interrupted was running, wherever that is */
	return !(as & DWUNW_PC_RETURN) || dwunw_space_find(p->space, pc - 1);
}

enum dwunw_status dwunw_pass_ended(const struct dwunw_pass *p, bool zero, bool stale)
{
	/* Zero is the outermost frame's return address, but also what a missing page reads as. */
	if (zero && p->sample->regs->flags & DWUNW_EVENT_STACK_FAULT)
		return DWUNW_STATUS_TRUNCATED;
	return stale ? DWUNW_STATUS_STALE : DWUNW_STATUS_ENDED;
}

static int walk_pass(struct dwunw_pass *p, bool *fast)
{
	int err = DWUNW_WALK_FULL;

	if (!(p->sample->flags & DWUNW_SAMPLE_FULL))
		err = dwunw_walk_fast(p);
	*fast = !err;
	return err == DWUNW_WALK_FULL ? dwunw_walk_full(p) : err;
}

int dwunw_walk(struct dwunw_space *space, const struct dwunw_sample *sample, uint32_t limit,
	       struct dwunw_result *result)
{
	struct dwunw_stacks *stacks = space->stacks;
	struct dwunw_pass p = {
		.space = space,
		.stacks = stacks,
		.sample = sample,
		.marks = stacks->marks,
		.runs = stacks->runs,
		.limit = limit,
	};
	bool fast;
	int err = walk_pass(&p, &fast);

	/* a history may have that of a stack that was cut for another reason */
	if (p.status == DWUNW_STATUS_TRUNCATED || p.status == DWUNW_STATUS_DEGRADED)
		p.status = dwunw_truncated(sample->regs->flags);
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
	return 0;
}
