/* addr_index.c - open addressing, at most half full */
#include "unwind/elf/addr_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define FIRST_ROOM 64

static void put(struct dwunw_addr_index *index, uint64_t addr, uint32_t number)
{
	size_t i = dwunw_addr_hash(index, addr);

	while (index->slots[i & (index->room - 1)].number)
		i++;
	index->slots[i & (index->room - 1)] = (struct dwunw_addr_slot){addr, number};
}

/* Without random numbers (early at boot, or no such system call) an address must do. */
static void choose_seed(struct dwunw_addr_index *index)
{
	if (getrandom(index->seed, sizeof(index->seed), GRND_NONBLOCK) != sizeof(index->seed))
		index->seed[0] = index->seed[1] = (uint64_t)(uintptr_t)index->slots;
}

static int grow(struct dwunw_addr_index *index)
{
	struct dwunw_addr_index larger = {.room = index->room ? 2 * index->room : FIRST_ROOM};

	larger.slots = calloc(larger.room, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	if (index->room)
		memcpy(larger.seed, index->seed, sizeof(larger.seed));
	else
		choose_seed(&larger);
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
