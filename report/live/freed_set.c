/* freed_set.c - open addressing with linear probing; a slot that becomes empty leaves no mark: see
 * block_map.c
 */
#include "report/live/freed_set.h"

#include <stdlib.h>
#include <string.h>

#include "report/base/hash_index.h"

#define FIRST_SLOTS 256
#define MOST_SLOTS  (1u << 22) /* 32 MiB a process */

/* The slot of @addr, or the empty one where it would go.  The set must have slots. */
static size_t seek(const struct freed_set *set, uint64_t addr)
{
	const size_t mask = set->nr_slots - 1;
	size_t i = hash_address(addr) & mask;

	while (set->slots[i] && set->slots[i] != addr)
		i = (i + 1) & mask;
	return i;
}

/* Twice as many slots, or empty ones if there are so many.  False: there is no memory. */
static bool grow(struct freed_set *set)
{
	struct freed_set larger = {.nr_slots = set->nr_slots ? set->nr_slots * 2 : FIRST_SLOTS};

	if (set->nr_slots == MOST_SLOTS) {
		memset(set->slots, 0, set->nr_slots * sizeof(*set->slots));
		set->nr = 0;
		return true;
	}
	larger.slots = calloc(larger.nr_slots, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < set->nr_slots; i++)
		if (set->slots[i])
			larger.slots[seek(&larger, set->slots[i])] = set->slots[i];
	larger.nr = set->nr;
	free(set->slots);
	*set = larger;
	return true;
}

void freed_set_add(struct freed_set *set, uint64_t addr)
{
	size_t at;

	if (!addr || (set->nr >= set->nr_slots / 2 && !grow(set)))
		return;
	at = seek(set, addr);
	set->nr += !set->slots[at];
	set->slots[at] = addr;
}

bool freed_set_has(const struct freed_set *set, uint64_t addr)
{
	return set->nr && set->slots[seek(set, addr)];
}

void freed_set_drop(struct freed_set *set, uint64_t addr)
{
	const size_t mask = set->nr_slots - 1;
	size_t hole;

	if (!set->nr)
		return;
	hole = seek(set, addr);
	if (!set->slots[hole])
		return;
	for (size_t i = (hole + 1) & mask; set->slots[i]; i = (i + 1) & mask) {
		size_t best = hash_address(set->slots[i]) & mask;

		/* it may move if the hole lies between where it would be best and where it is */
		if (((i - best) & mask) < ((i - hole) & mask))
			continue;
		set->slots[hole] = set->slots[i];
		hole = i;
	}
	set->slots[hole] = 0;
	set->nr--;
}

void freed_set_release(struct freed_set *set)
{
	free(set->slots);
	*set = (struct freed_set){0};
}
