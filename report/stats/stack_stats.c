/* stack_stats.c - see stack_stats.h
 *
 * The share of each stack at the peak is what it had when the largest sum so far was reached.  No
 * copy of all shares is made for each new largest sum: a stack keeps its share when it changes for
 * the first time after it.
 */
#include "report/stats/stack_stats.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/hash_index.h"

int stack_stats_new(struct stack_stats **out, struct stacks *stacks)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->stacks = stacks;
	return 0;
}

/* The last event of this thread, or NULL when there is no memory to note it. */
static struct last_event *last_of(struct stack_stats *figures, uint32_t tgid, uint32_t tid)
{
	const struct last_event key = {.tgid = tgid, .tid = tid};
	struct last_event *last = figures->nr ? &figures->all[figures->last] : NULL;
	uint32_t number;

	if (last && last->tgid == tgid && last->tid == tid)
		return last;
	if (intern_pair(&figures->table, &key, sizeof(key), &number) < 0)
		return NULL;
	figures->last = number;
	return &figures->all[number];
}

/* Keep what @stack had at the last peak, before it changes. */
static void keep_share(struct stack_stats *figures, struct stack *stack)
{
	if (stack->peaks_seen == figures->nr_peaks)
		return;
	stack->peak = stack->now;
	stack->peaks_seen = figures->nr_peaks;
}

static void on_outstanding(struct stack_stats *figures, const struct live_change *change)
{
	struct stack *stack = &figures->stacks->all[change->block->stack];
	struct live_amount more = live_change_of_outstanding(change);

	keep_share(figures, stack);
	live_amount_add(&stack->now, more);
	live_amount_add(&figures->now, more);
	if (figures->now.bytes <= figures->peak.bytes)
		return;
	figures->peak = figures->now;
	figures->nr_peaks++;
}

static void on_given(struct stack_stats *figures, const struct live_change *change)
{
	const struct live_block *block = change->block;
	struct stack *stack = &figures->stacks->all[block->stack];

	live_amount_add(&stack->allocated, change->more);
	if (!change->more.bytes && block->size)
		return; /* a mapping was split in two: nothing was allocated */
	if (!stack->first_ns || block->time_ns < stack->first_ns)
		stack->first_ns = block->time_ns;
	if (block->time_ns > stack->last_ns)
		stack->last_ns = block->time_ns;
}

/* Was @block, which @event frees, there for a moment only? */
static bool is_temporary(const struct stack_stats *figures, const struct live_block *block,
			 const struct mlk_event *event)
{
	if (figures->given && figures->given == block->addr)
		return true;
	/* events of different threads may run backwards by some microseconds */
	return figures->temporary_ns && (event->time_ns <= block->time_ns ||
					 event->time_ns - block->time_ns <= figures->temporary_ns);
}

static void on_taken(struct stack_stats *figures, const struct live_change *change)
{
	struct stack *stack = &figures->stacks->all[change->block->stack];
	const struct mlk_event *event = change->event;

	live_amount_add(&stack->freed, change->more);
	if (change->sum != LIVE_FREED || !event || event->kind != MLK_FREE)
		return;
	if (is_temporary(figures, change->block, event))
		stack->temporary += change->more.blocks;
}

void stack_stats_set_temporary(struct stack_stats *figures, uint64_t ns)
{
	figures->temporary_ns = ns;
}

void stack_stats_event(struct stack_stats *figures, const struct mlk_event *event)
{
	struct last_event *last;

	figures->given = 0;
	if (event->kind != MLK_ALLOC && event->kind != MLK_FREE && event->kind != MLK_UNMAP)
		return;
	last = last_of(figures, event->tgid, event->tid);
	if (!last) {
		figures->failed = true;
		return;
	}
	figures->given = last->addr;
	last->addr = event->kind == MLK_ALLOC ? event->addr : 0;
}

/* Which threads are kept. */
struct kept {
	bool (*is_gone)(void *arg, uint32_t tgid);
	void *arg;
};

static bool keep_thread(void *arg, void *thing)
{
	const struct kept *kept = arg;

	return !kept->is_gone(kept->arg, ((const struct last_event *)thing)->tgid);
}

void stack_stats_forget(struct stack_stats *figures, bool (*is_gone)(void *arg, uint32_t tgid),
			void *arg)
{
	struct kept kept = {is_gone, arg};

	intern_keep_pairs(&figures->table, sizeof(struct last_event), keep_thread, &kept);
	figures->last = 0;
}

void stack_stats_restart(struct stack_stats *figures, uint32_t number)
{
	struct stack *stack = &figures->stacks->all[number];

	*stack = (struct stack){.id = stack->id,
				.process = stack->process,
				.status = stack->status,
				.peaks_seen = figures->nr_peaks};
}

void stack_stats_changed(void *arg, const struct live_change *change)
{
	if (change->sum == LIVE_OUTSTANDING || change->outstanding)
		on_outstanding(arg, change);
	if (change->sum == LIVE_ALLOCATED)
		on_given(arg, change);
	else if (change->sum != LIVE_OUTSTANDING && change->sum != LIVE_OLDER)
		on_taken(arg, change);
}

int stack_stats_finish(struct stack_stats *figures)
{
	for (uint32_t i = 0; i < figures->stacks->nr; i++)
		keep_share(figures, &figures->stacks->all[i]);
	return figures->failed ? -ENOMEM : 0;
}

void stack_stats_free(struct stack_stats *figures)
{
	if (!figures)
		return;
	intern_release(&figures->table);
	free(figures);
}
