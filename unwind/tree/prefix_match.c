/* prefix_match.c - see prefix_match.h */
#include "unwind/tree/prefix_match.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE  64
#define FIRST_SLOTS 256u
#define MAX_SLOTS   (1u << 20)

static struct dwunw_fork *new_slots(uint32_t nr)
{
	struct dwunw_fork *slots = aligned_alloc(CACHE_LINE, nr * sizeof(*slots));

	if (slots)
		memset(slots, 0, nr * sizeof(*slots));
	return slots;
}

int dwunw_prefix_match_init(struct dwunw_prefix_match *forks)
{
	*forks = (struct dwunw_prefix_match){.slots = new_slots(FIRST_SLOTS),
					     .mask = FIRST_SLOTS - 1};
	return forks->slots ? 0 : -ENOMEM;
}

void dwunw_prefix_match_release(struct dwunw_prefix_match *forks)
{
	free(forks->slots);
}

static bool same_key(const struct dwunw_fork *a, const struct dwunw_fork *b)
{
	return a->word == b->word && a->from == b->from && a->nr == b->nr && a->space == b->space;
}

static void put(struct dwunw_prefix_match *forks, const struct dwunw_fork *fork)
{
	const uint32_t first = dwunw_fork_hash(fork->word, fork->from, fork->nr);
	struct dwunw_fork *slot;

	for (uint32_t i = first; i != first + DWUNW_FORK_PROBES; i++) {
		slot = &forks->slots[i & forks->mask];
		if (slot->to && !same_key(slot, fork))
			continue;
		forks->nr += !slot->to;
		*slot = *fork;
		return;
	}
	forks->slots[first & forks->mask] = *fork;
}

/* Twice the room; or none, and then forks are forgotten for others. */
static void grow(struct dwunw_prefix_match *forks)
{
	struct dwunw_prefix_match larger = {.mask = 2 * forks->mask + 1};

	larger.slots = new_slots(larger.mask + 1);
	if (!larger.slots)
		return;
	for (uint32_t i = 0; i <= forks->mask; i++)
		if (forks->slots[i].to)
			put(&larger, &forks->slots[i]);
	free(forks->slots);
	*forks = larger;
}

/* Find frame @nr of stack @id.  Returns false if frames before it are not those of stack @from. */
static bool follow(const struct dwunw_node *nodes, uint32_t from, uint32_t id, uint32_t nr,
		   uint32_t *at)
{
	for (*at = id; nr; nr--) {
		if (!nodes[from].place || nodes[*at].place != nodes[from].place)
			return false;
		from = dwunw_stack_tree_parent(&nodes[from]);
		*at = dwunw_stack_tree_parent(&nodes[*at]);
	}
	return true;
}

/* Is frame @fork->nr at @fork->at? */
static bool leads_on(const struct dwunw_node *nodes, const struct dwunw_fork *fork)
{
	const struct dwunw_node *node = &nodes[fork->at];

	if (fork->nr & DWUNW_FORK_END)
		return fork->at == fork->word;
	return fork->from == DWUNW_NO_NODE ||
	       (node->pc == fork->word && !(node->rule.kind & DWUNW_NOT_RETURN));
}

void dwunw_prefix_match_learn(struct dwunw_prefix_match *forks, const struct dwunw_stack_tree *tree,
			      struct dwunw_fork *fork)
{
	if (!follow(tree->nodes, fork->from, fork->to, fork->nr & ~DWUNW_FORK_END, &fork->at) ||
	    !leads_on(tree->nodes, fork))
		return;
	if (forks->nr > forks->mask / 4 && forks->mask < MAX_SLOTS - 1)
		grow(forks);
	put(forks, fork);
}
