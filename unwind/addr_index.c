/* addr_index.c - open addressing, at most half full */
#include "unwind/addr_index.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_ROOM 64

static void put(struct dwunw_addr_index *index, uint64_t addr, uint32_t number)
{
	size_t i = dwunw_addr_hash(addr);

	while (index->slots[i & (index->room - 1)].number)
		i++;
	index->slots[i & (index->room - 1)] = (struct dwunw_addr_slot){addr, number};
}

static int grow(struct dwunw_addr_index *index)
{
	struct dwunw_addr_index larger = {.room = index->room ? 2 * index->room : FIRST_ROOM};

	larger.slots = calloc(larger.room, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < index->room; i++)
		if (index->slots[i].number)
			put(&larger, index->slots[i].addr, index->slots[i].number);
	larger.nr = index->nr;
	free(index->slots);
	*index = larger;
	return 0;
}

int dwunw_addr_index_add(struct dwunw_addr_index *index, uint64_t addr, uint32_t number)
{
	if (number == DWUNW_NOT_FOUND || (2 * index->nr >= index->room && grow(index)))
		return -ENOMEM;
	put(index, addr, number + 1);
	index->nr++;
	return 0;
}

void dwunw_addr_index_release(struct dwunw_addr_index *index)
{
	free(index->slots);
	*index = (struct dwunw_addr_index){0};
}
