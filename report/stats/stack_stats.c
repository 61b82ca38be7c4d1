/* stack_stats.c - see stack_stats.h
 *
 * The share of each stack at the peak is what it had when the largest sum so far was reached.  No
 * copy of all shares is made for each new largest sum: a stack keeps its share when it changes for
 * the first time after it.
 */
#include "report/stats/stack_stats.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"

/* What a thread was given by its last event. */
struct last {
	uint32_t tgid, tid;
	uint64_t addr; /* 0: nothing */
};

struct stack_stats {
	struct stacks *stacks;
	struct live_amount now, peak;
	uint64_t nr_peaks; /* how often the peak rose */
	struct last *threads;
	size_t nr, room;
	size_t last;		 /* the thread of the last event: often that of the next, too */
	struct hash_index index; /* of threads */
	uint64_t given; /* what the thread of this event was given by the one before; 0: nothing */
	uint64_t temporary_ns;
	bool failed;
};

int stack_stats_new(struct stack_stats **out, struct stacks *stacks)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->stacks = stacks;
	return 0;
}

static bool same_thread(const void *things, uint32_t number, const void *key)
{
	const struct last *a = &((const struct stack_stats *)things)->threads[number], *b = key;

	return a->tgid == b->tgid && a->tid == b->tid;
}

/* The last event of this thread, or NULL when there is no memory to note it. */
static struct last *last_of(struct stack_stats *figures, uint32_t tgid, uint32_t tid)
{
	struct last key = {.tgid = tgid, .tid = tid}, *threads;
	struct hash_query query = {.things = figures, .key = &key, .equal = same_thread};
	uint32_t number;

	if (figures->nr && same_thread(figures, (uint32_t)figures->last, &key))
		return &figures->threads[figures->last];
	query.hash = hash_word(tgid, tid);
	if (hash_index_find(&figures->index, &query, &number)) {
		figures->last = number;
		return &figures->threads[number];
	}
	threads = array_grow(figures->threads, &figures->room, figures->nr + 1, sizeof(*threads));
	if (!threads)
		return NULL;
	figures->threads = threads;
	if (hash_index_add(&figures->index, query.hash, (uint32_t)figures->nr))
		return NULL;
	threads[figures->nr] = key;
	return &threads[figures->nr++];
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
	struct stack *stack = stacks_get(figures->stacks, change->block->stack);
	struct live_amount more = live_change_of_outstanding(change);

	keep_share(figures, stack);
	stack->now.blocks += more.blocks;
	stack->now.bytes += more.bytes;
	figures->now.blocks += more.blocks;
	figures->now.bytes += more.bytes;
	if (figures->now.bytes <= figures->peak.bytes)
		return;
	figures->peak = figures->now;
	figures->nr_peaks++;
}

static void on_given(struct stack_stats *figures, const struct live_change *change)
{
	const struct live_block *block = change->block;
	struct stack *stack = stacks_get(figures->stacks, block->stack);

	stack->allocated.blocks += change->more.blocks;
	stack->allocated.bytes += change->more.bytes;
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
	struct stack *stack = stacks_get(figures->stacks, change->block->stack);
	const struct mlk_event *event = change->event;

	stack->freed.blocks += change->more.blocks;
	stack->freed.bytes += change->more.bytes;
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
	struct last *last;

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

void stack_stats_changed(void *arg, const struct live_change *change)
{
	if (change->sum == LIVE_OUTSTANDING || change->outstanding)
		on_outstanding(arg, change);
	if (change->sum == LIVE_ALLOCATED)
		on_given(arg, change);
	else if (change->sum != LIVE_OUTSTANDING)
		on_taken(arg, change);
}

int stack_stats_finish(struct stack_stats *figures)
{
	for (uint32_t i = 0; i < stacks_nr(figures->stacks); i++)
		keep_share(figures, stacks_get(figures->stacks, i));
	return figures->failed ? -ENOMEM : 0;
}

struct live_amount stack_stats_peak(const struct stack_stats *figures)
{
	return figures->peak;
}

void stack_stats_free(struct stack_stats *figures)
{
	if (!figures)
		return;
	free(figures->threads);
	hash_index_release(&figures->index);
	free(figures);
}
