/* history.c - see history.h
 *
 * A frame is the same as one of the walk before if place, rsp and rbp are, and then so is the rest
 * if all bytes from its rsp on are: the hot loop reads nothing else.
 */
#include "unwind/walk/history.h"

#include <errno.h>
#include <stdlib.h>

/* What decides on where a stack ends; RETURN_ADDRESS is in the first frame's place. */
#define END_FLAGS                                                                         \
	(DWUNW_EVENT_STACK_LIMIT | DWUNW_EVENT_STACK_FAULT | DWUNW_EVENT_STACK_DEGRADED | \
	 DWUNW_EVENT_STACK_UNBOUNDED)

int dwunw_history_new(struct dwunw_history **out)
{
	*out = malloc(sizeof(**out));
	if (!*out)
		return -ENOMEM;
	dwunw_history_clear(*out);
	return 0;
}

void dwunw_history_free(struct dwunw_history *history)
{
	free(history);
}

void dwunw_history_clear(struct dwunw_history *history)
{
	if (history)
		history->nr = 0;
}

static uint64_t end_of(const struct dwunw_stack *stack)
{
	return stack->addr + stack->len;
}

uint64_t dwunw_history_begin(struct dwunw_pass *p)
{
	const struct dwunw_sample *s = p->sample;
	const struct dwunw_history *h = s->history;

	if (!h || !h->nr || h->space != p->space->serial || h->stack_end != end_of(s->stack) ||
	    h->stale_from != s->stale_from || h->flags != (s->regs->flags & END_FLAGS) ||
	    h->sample_flags != s->flags)
		return UINT64_MAX;
	p->history_at = h->nr;
	return s->unchanged_from;
}

uint32_t dwunw_history_node(const struct dwunw_pass *p)
{
	return p->sample->history->frames[p->taken - 1].node;
}

static bool same_bp(const struct dwunw_mark *old, const struct dwunw_mark *mark)
{
	if (!(old->bits & DWUNW_MARK_BP_NEEDED))
		return true;
	if ((old->bits ^ mark->bits) & DWUNW_MARK_BP_KNOWN)
		return false;
	return old->bp == mark->bp || !(mark->bits & DWUNW_MARK_BP_KNOWN);
}

bool dwunw_history_meets(struct dwunw_pass *p, const struct dwunw_mark *mark, uint32_t place)
{
	const struct dwunw_history *h = p->sample->history;
	const struct dwunw_mark *old;
	uint32_t at = p->history_at;

	while (at && h->frames[at - 1].sp < mark->sp)
		at--;
	p->history_at = at;
	if (!at)
		return false;
	old = &h->frames[at - 1];
	if (old->sp != mark->sp || p->stacks->tree.nodes[old->node].place != place ||
	    at > h->nr_whole || !same_bp(old, mark))
		return false;
	/* The frame limit, and the rule for the first frame's missing information, count frames. */
	if (p->nr + at > p->limit || (h->by_none && p->nr + at < 2))
		return false;
	p->taken = at;
	p->status = h->status;
	p->by_none = h->by_none;
	return true;
}

/* Does the walk from a frame with this rule depend on rbp, if from its caller it does (@above)? */
static uint32_t needs_bp(uint8_t kind, uint32_t above)
{
	switch (kind) {
	case DWUNW_RULE_SP:
	case DWUNW_RULE_PLT:
	case DWUNW_RULE_POPPED:
		return above;
	case DWUNW_RULE_SP_BP:
	case DWUNW_RULE_END:
	case DWUNW_RULE_NONE:
	case DWUNW_RULE_ZERO:
		return 0;
	default:
		return DWUNW_MARK_BP_NEEDED;
	}
}

void dwunw_history_keep(const struct dwunw_pass *p, bool whole)
{
	const struct dwunw_sample *s = p->sample;
	const struct dwunw_node *nodes = p->stacks->tree.nodes;
	const struct dwunw_place *places = p->stacks->places.all;
	struct dwunw_history *h = s->history;
	uint32_t needed = p->taken ? h->frames[p->taken - 1].bits & DWUNW_MARK_BP_NEEDED : 0;
	struct dwunw_mark *to = h->frames + p->taken;

	h->nr = 0;
	/* A walk that the limit ended has other frames if it begins elsewhere; one without any
	 * caller for lack of information may go on in another walk. */
	if (!whole || p->status == DWUNW_STATUS_FRAME_LIMIT || (p->by_none && p->nr + p->taken < 2))
		return;
	for (uint32_t i = p->nr; i-- > 0; to++) {
		*to = p->marks[i];
		needed = needs_bp(places[nodes[to->node].place].rule.kind, needed);
		to->bits = (to->bits & DWUNW_MARK_BP_KNOWN) | needed;
	}
	h->space = p->space->serial;
	h->stack_end = end_of(s->stack);
	h->stale_from = s->stale_from;
	h->flags = s->regs->flags & END_FLAGS;
	h->sample_flags = s->flags;
	h->nr = p->nr + p->taken;
	h->nr_whole = h->nr - p->bound;
	h->by_none = p->by_none;
	h->status = p->status;
}
