/* addr_index.h - a hash from addresses to numbers */
#ifndef DWUNW_ADDR_INDEX_H
#define DWUNW_ADDR_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/hash.h"

#define DWUNW_NOT_FOUND UINT32_MAX

/* An address and its number. */
struct dwunw_addr_slot {
	uint64_t addr;
	uint32_t number; /* plus one; 0: the slot is free */
};

/* Zeroes make an empty one. */
struct dwunw_addr_index {
	struct dwunw_addr_slot *slots;
	size_t room; /* 0 or a power of two */
	size_t nr;
	struct dwunw_seed seed; /* drawn with the first slots */
};

/* Free the slots, and make an empty one. */
void dwunw_addr_index_release(struct dwunw_addr_index *index);

/* Add @addr, which must not be in yet.  Returns 0 or -ENOMEM. */
int dwunw_addr_index_add(struct dwunw_addr_index *index, uint64_t addr, uint32_t number);

/* The number of @addr, or DWUNW_NOT_FOUND.  Here, not in the .c: it is on the hot path. */
static inline uint32_t dwunw_addr_index_find(const struct dwunw_addr_index *index, uint64_t addr)
{
	if (!index->room)
		return DWUNW_NOT_FOUND;
	for (size_t i = dwunw_hash(&index->seed, addr, 0);; i++) {
		const struct dwunw_addr_slot *slot = &index->slots[i & (index->room - 1)];

		if (!slot->number)
			return DWUNW_NOT_FOUND;
		if (slot->addr == addr)
			return slot->number - 1;
	}
}

#endif
