/* figures.c - see figures.h
 *
 * The share of each stack at the peak is what it had when the largest sum so far was reached.  No
 * copy of all shares is made for each new largest sum: a stack keeps its share when it changes for
 * the first time after it.
 */
#include "report/figures.h"

#include <errno.h>
#include <stdlib.h>

#include "report/array.h"
#include "report/hash_index.h"

/* The last allocation of a thread, unless something else of it came after. */
struct last {
	uint32_t tgid, tid;
	uint64_t addr; /* 0: none */
};

struct figures {
	struct stacks *stacks;
	struct live_amount now, peak;
	uint64_t nr_peaks; /* how often the peak rose */
	struct last *threads;
	size_t nr, room;
	struct hash_index index; /* of threads */
	bool failed;
};

int figures_new(struct figures **out, struct stacks *stacks)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->stacks = stacks;
	return 0;
}

static bool same_thread(const void *things, uint32_t number, const void *key)
{
	const struct last *a = &((const struct figures *)things)->threads[number], *b = key;

	return a->tgid == b->tgid && a->tid == b->tid;
}

/* The last allocation of this thread, or NULL when there is no memory to note it. */
static struct last *last_of(struct figures *figures, uint32_t tgid, uint32_t tid)
{
	struct last key = {.tgid = tgid, .tid = tid}, *threads;
	struct hash_query query = {
		.hash = hash_word(tgid, tid), .things = figures, .key = &key, .equal = same_thread};
	uint32_t number;

	if (hash_index_find(&figures->index, &query, &number))
		return &figures->threads[number];
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
static void keep_share(struct figures *figures, struct stack *stack)
{
	if (stack->peaks_seen == figures->nr_peaks)
		return;
	stack->peak = stack->now;
	stack->peaks_seen = figures->nr_peaks;
}

static void on_outstanding(struct figures *figures, const struct live_change *change)
{
	struct stack *stack = stacks_get(figures->stacks, change->block->stack);

	keep_share(figures, stack);
	stack->now.blocks += change->more.blocks;
	stack->now.bytes += change->more.bytes;
	figures->now.blocks += change->more.blocks;
	figures->now.bytes += change->more.bytes;
	if (figures->now.bytes <= figures->peak.bytes)
		return;
	figures->peak = figures->now;
	figures->nr_peaks++;
}

static void on_given(struct figures *figures, const struct live_change *change)
{
	const struct live_block *block = change->block;
	struct stack *stack = stacks_get(figures->stacks, block->stack);
	struct last *last;

	stack->allocated.blocks += change->more.blocks;
	stack->allocated.bytes += change->more.bytes;
	if (!change->more.bytes && block->size)
		return; /* a mapping fell into two: nothing was given out */
	if (!stack->first_ns || block->time_ns < stack->first_ns)
		stack->first_ns = block->time_ns;
	if (block->time_ns > stack->last_ns)
		stack->last_ns = block->time_ns;
	last = last_of(figures, block->tgid, block->tid);
	if (last)
		last->addr = block->addr;
	else
		figures->failed = true;
}

static void on_taken(struct figures *figures, const struct live_change *change)
{
	struct stack *stack = stacks_get(figures->stacks, change->block->stack);
	const struct mlk_event *event = change->event;
	struct last *last;

	stack->freed.blocks += change->more.blocks;
	stack->freed.bytes += change->more.bytes;
	if (change->sum != LIVE_FREED || !event || event->kind != MLK_FREE)
		return;
	last = last_of(figures, event->tgid, event->tid);
	if (!last)
		return;
	if (last->addr && last->addr == change->block->addr)
		stack->temporary += change->more.blocks;
	last->addr = 0;
}

void figures_changed(void *arg, const struct live_change *change)
{
	switch (change->sum) {
	case LIVE_OUTSTANDING:
		on_outstanding(arg, change);
		break;
	case LIVE_ALLOCATED:
		on_given(arg, change);
		break;
	default:
		on_taken(arg, change);
	}
}

int figures_finish(struct figures *figures)
{
	for (uint32_t i = 0; i < stacks_nr(figures->stacks); i++)
		keep_share(figures, stacks_get(figures->stacks, i));
	return figures->failed ? -ENOMEM : 0;
}

struct live_amount figures_peak(const struct figures *figures)
{
	return figures->peak;
}

void figures_free(struct figures *figures)
{
	if (!figures)
		return;
	free(figures->threads);
	hash_index_release(&figures->index);
	free(figures);
}
