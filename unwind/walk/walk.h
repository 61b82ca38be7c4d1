/* walk.h - one walk from a sample's registers outwards, and what is left of it for its id
 *
 * fast.c walks with rsp, rbp and pc alone and gives up where that is not enough; full.c walks with
 * all registers.  Both leave the same in struct dwunw_pass.
 */
#ifndef DWUNW_WALK_H
#define DWUNW_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/dwunw.h"
#include "unwind/module/dwunw_state.h"
#include "unwind/module/space.h"
#include "unwind/tree/pc_cache.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Between these addresses no sum of an address and a rule's offset wraps around. */
#define DWUNW_MIN_ADDR ((uint64_t)1 << 32)
#define DWUNW_MAX_ADDR ((uint64_t)1 << 63)

/* Bits of dwunw_mark.bits. */
enum dwunw_mark_bit {
	DWUNW_MARK_BP_KNOWN = 1 << 0,  /* bp is the frame's rbp */
	DWUNW_MARK_BP_NEEDED = 1 << 1, /* the walk from here on depends on it */
};

#define DWUNW_NO_SLOT UINT32_MAX

/* The walk over one sample.  The frames are counted from 0, the innermost. */
struct dwunw_pass {
	struct dwunw_space *space;
	struct dwunw_stacks *stacks;
	const struct dwunw_sample *sample;
	struct dwunw_mark *marks; /* in stacks->scratch, as the runs */
	struct dwunw_run *runs;
	uint32_t nr, nr_runs;
	uint32_t limit;	     /* of frames, those taken over included */
	uint32_t bound;	     /* frames below this one read more than a mark tells: take none over */
	uint32_t history_at; /* frames of the history that may still meet the walk */
	uint32_t taken;	     /* frames that were taken over from the history, beyond nr */
	bool by_none;	     /* it ended where there is no call frame information */
	enum dwunw_status status;
};

/* The node of the innermost frame that was taken over. */
uint32_t dwunw_history_node(const struct dwunw_pass *p);

/* What a walk returns, besides 0 and -ENOMEM. */
#define DWUNW_WALK_FULL 1 /* take dwunw_walk_full() */

/* Walk; on 0 all of @p is filled.  Returns 0, DWUNW_WALK_FULL or -ENOMEM. */
int dwunw_walk_fast(struct dwunw_pass *p);

/* The same with all registers.  Returns 0 or -ENOMEM. */
int dwunw_walk_full(struct dwunw_pass *p);

/* dwunw_capture() at the length of a walk, over at most @limit frames.  The arguments are its. */
int dwunw_walk(struct dwunw_space *space, const struct dwunw_sample *sample, uint32_t limit,
	       struct dwunw_result *result);

/* Set place, slot and node of @run, the last one, by the cache.  Returns 0 or -ENOMEM. */
int dwunw_pass_look_up(struct dwunw_pass *p, uint64_t pc, uint32_t as, struct dwunw_run *run);

/* Whether two frames meet in a slot matters little: one of them is not guessed then. */
static inline uint32_t dwunw_guess_slot(uint64_t pc, uint64_t sp)
{
	return (uint32_t)((pc ^ sp ^ sp << 23) * 0x9e3779b97f4a7c15u >> 32) % DWUNW_NR_GUESSES;
}

/* Begin a run with the frame p->nr, which is at @pc, looked up @as, and @sp; its mark's node is
 * set. All places may have moved.  Returns 0 or -ENOMEM. */
static inline int dwunw_pass_run(struct dwunw_pass *p, uint64_t pc, uint64_t sp, uint32_t as)
{
	struct dwunw_run *run = &p->runs[p->nr_runs++];
	const uint32_t at = dwunw_guess_slot(pc, sp);
	const struct dwunw_guess guess = p->stacks->guesses[at];
	const uint32_t number = p->stacks->tree.nodes[guess.node].place;
	const struct dwunw_place *place = &p->stacks->places.all[number];

	run->first = p->nr;
	run->place = number;
	run->slot = DWUNW_NO_SLOT;
	run->guess = at;
	p->marks[p->nr].node = guess.node;
	if (place->pc == pc && place->rule.as == as >> DWUNW_PC_SHIFT &&
	    guess.space == (uint32_t)p->space->serial)
		return 0;
	return dwunw_pass_look_up(p, pc, as, run);
}

/* dwunw_pass_finish() where the guess for the innermost frame is not that of the whole stack; @node
 * is that above the runs. */
int dwunw_pass_finish_runs(struct dwunw_pass *p, uint32_t node, uint32_t *id);

/* Find the node of the whole stack; those of p->marks are then right.  Returns 0 or -ENOMEM. */
static inline int dwunw_pass_finish(struct dwunw_pass *p, uint32_t *id)
{
	const struct dwunw_node *nodes = p->stacks->tree.nodes;
	uint32_t node = p->taken ? dwunw_history_node(p) : dwunw_stack_tree_root(p->status);

	if (p->nr_runs > 1 || !p->nr ||
	    dwunw_stack_tree_parent(&nodes[p->marks[p->nr - 1].node]) != node ||
	    p->runs[0].slot != DWUNW_NO_SLOT)
		return dwunw_pass_finish_runs(p, node, id);
	*id = p->marks[0].node;
	return 0;
}

/* Is @sp at the very end of a stack that was taken as a whole?  Then no call can have led there: it
 * is the outermost frame, even of code without CFI, such as the dynamic loader's start. */
bool dwunw_pass_at_end(const struct dwunw_pass *p, uint64_t sp);

/* The status of a stack with @event_flags whose bytes did not reach. */
static inline enum dwunw_status dwunw_truncated(uint32_t event_flags)
{
	if (event_flags & DWUNW_EVENT_STACK_ELSEWHERE)
		return DWUNW_STATUS_NOT_CODE;
	return event_flags & DWUNW_EVENT_STACK_DEGRADED ? DWUNW_STATUS_DEGRADED
							: DWUNW_STATUS_TRUNCATED;
}

/* Can @pc, looked up @as, be that of a frame?  A return address must be in an executable mapping.
 */
bool dwunw_pass_is_code(const struct dwunw_pass *p, uint64_t pc, uint32_t as);

/* The status of a walk that came to the outermost frame, by a return address of 0 if @zero. */
enum dwunw_status dwunw_pass_ended(const struct dwunw_pass *p, bool zero, bool stale);

#endif
