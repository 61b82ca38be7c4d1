/* hash_index.c - open addressing with linear probing; nothing is ever taken out */
#include "report/hash_index.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SLOTS 64

struct hash_slot {
	uint32_t hash;	 /* the low half: spares most calls of equal() */
	uint32_t number; /* plus one; zero: empty */
};

uint64_t hash_word(uint64_t hash, uint64_t word)
{
	/* the finalizer of SplitMix64: every bit of the word reaches every bit of the hash */
	hash = (hash ^ word) + 0x9e3779b97f4a7c15;
	hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
	hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
	return hash ^ (hash >> 31);
}

uint64_t hash_text(uint64_t hash, const char *text)
{
	/* FNV-1a, whose low bits are good enough once hash_word() has stirred them */
	uint64_t fnv = 0xcbf29ce484222325;

	for (; *text; text++)
		fnv = (fnv ^ (unsigned char)*text) * 0x100000001b3;
	return hash_word(hash, fnv);
}

bool hash_index_find(const struct hash_index *index, const struct hash_query *query,
		     uint32_t *number)
{
	size_t mask = index->nr_slots - 1;

	if (!index->nr_slots)
		return false;
	for (size_t i = query->hash & mask; index->slots[i].number; i = (i + 1) & mask) {
		const struct hash_slot *slot = &index->slots[i];

		if (slot->hash == (uint32_t)query->hash &&
		    query->equal(query->things, slot->number - 1, query->key)) {
			*number = slot->number - 1;
			return true;
		}
	}
	return false;
}

static void place(struct hash_slot *slots, size_t mask, struct hash_slot slot)
{
	size_t i = slot.hash & mask;

	while (slots[i].number)
		i = (i + 1) & mask;
	slots[i] = slot;
}

static int grow(struct hash_index *index)
{
	size_t nr = index->nr_slots ? index->nr_slots * 2 : FIRST_SLOTS;
	struct hash_slot *slots;

	/* only 32 bits of the hash are kept, which is as many things as there are numbers for */
	slots = calloc(nr, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < index->nr_slots; i++)
		if (index->slots[i].number)
			place(slots, nr - 1, index->slots[i]);
	free(index->slots);
	index->slots = slots;
	index->nr_slots = nr;
	return 0;
}

int hash_index_add(struct hash_index *index, uint64_t hash, uint32_t number)
{
	struct hash_slot slot = {.hash = (uint32_t)hash, .number = number + 1};

	if (number == UINT32_MAX)
		return -ENOMEM;
	if (index->nr_used >= index->nr_slots / 2 && grow(index))
		return -ENOMEM;
	place(index->slots, index->nr_slots - 1, slot);
	index->nr_used++;
	return 0;
}

void hash_index_release(struct hash_index *index)
{
	free(index->slots);
	*index = (struct hash_index){0};
}
