/* frame_table.c - see frame_table.h */
#include "unwind/tree/frame_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/tree/pc_cache.h"

#define FIRST_ROOM 256

int dwunw_frame_table_init(struct dwunw_frame_table *places, const struct dwunw_seed *seed)
{
	*places =
		(struct dwunw_frame_table){.nr = 1, .room = FIRST_ROOM, .nr_slots = 2 * FIRST_ROOM};
	places->seed = *seed;
	places->all = calloc(places->room, sizeof(*places->all));
	places->slots = calloc(places->nr_slots, sizeof(*places->slots));
	if (!places->all || !places->slots)
		return -ENOMEM;
	places->all[0].rule = (struct dwunw_rule){.kind = DWUNW_RULE_ZERO,
						  .as = DWUNW_PC_RETURN >> DWUNW_PC_SHIFT};
	return 0;
}

void dwunw_frame_table_release(struct dwunw_frame_table *places)
{
	free(places->all);
	free(places->slots);
}

static uint64_t hash_of(const struct dwunw_frame_table *places, const struct dwunw_place *place)
{
	return dwunw_hash(&places->seed, place->pc ^ place->addr << 1,
			  (uint64_t)place->flags << 32 | place->module);
}

static bool same_frame(const struct dwunw_place *a, const struct dwunw_place *b)
{
	return a->pc == b->pc && a->addr == b->addr && a->module == b->module &&
	       a->flags == b->flags;
}

static void put_frame(struct dwunw_frame_table *places, uint32_t number)
{
	size_t mask = places->nr_slots - 1, i = hash_of(places, &places->all[number]) & mask;

	while (places->slots[i])
		i = (i + 1) & mask;
	places->slots[i] = number;
}

static int grow_frames(struct dwunw_frame_table *places)
{
	struct dwunw_place *all;
	uint32_t *slots;

	if (places->nr >= DWUNW_MAX_PLACES)
		return -ENOMEM;
	if (places->nr < places->room)
		return 0;
	slots = calloc(2 * places->nr_slots, sizeof(*slots));
	all = slots ? reallocarray(places->all, 2 * places->room, sizeof(*all)) : NULL;
	if (!all) {
		free(slots);
		return -ENOMEM;
	}
	free(places->slots);
	places->slots = slots;
	places->nr_slots *= 2;
	places->all = all;
	places->room *= 2;
	for (uint32_t i = 1; i < places->nr; i++)
		put_frame(places, i);
	return 0;
}

/* @frame as the table has it, with a rule SLOW. */
static struct dwunw_place place_of(const struct dwunw_frame *frame)
{
	return (struct dwunw_place){
		.pc = frame->pc,
		.rule = {.kind = DWUNW_RULE_SLOW, .as = UINT8_MAX},
		.addr = frame->addr,
		.module = frame->module,
		.flags = frame->flags & ~(uint32_t)DWUNW_FRAME_FLAG_PARTIAL,
	};
}

static uint32_t find_place(const struct dwunw_frame_table *places, const struct dwunw_place *key)
{
	size_t mask = places->nr_slots - 1, i;

	for (i = hash_of(places, key) & mask; places->slots[i]; i = (i + 1) & mask)
		if (same_frame(&places->all[places->slots[i]], key))
			break;
	return places->slots[i];
}

uint32_t dwunw_frame_table_find(const struct dwunw_frame_table *places,
				const struct dwunw_frame *frame)
{
	const struct dwunw_place key = place_of(frame);

	return find_place(places, &key);
}

int dwunw_frame_table_intern(struct dwunw_frame_table *places, const struct dwunw_frame *frame,
			     uint32_t *number)
{
	const struct dwunw_place key = place_of(frame);

	*number = find_place(places, &key);
	if (*number)
		return 0;
	if (grow_frames(places))
		return -ENOMEM;
	*number = places->nr++;
	places->all[*number] = key;
	put_frame(places, *number);
	return 0;
}
