/* addr_index.c - open addressing, at most half full */
#include "unwind/elf/addr_index.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define FIRST_ROOM 64

static void put_addr(struct dwunw_addr_index *index, uint64_t addr, uint32_t number)
{
	size_t i = dwunw_hash(&index->seed, addr, 0);

	while (index->slots[i & (index->room - 1)].number)
		i++;
	index->slots[i & (index->room - 1)] = (struct dwunw_addr_slot){addr, number};
}

/* Without random numbers (early at boot, or no such system call) an address must do. */
void dwunw_seed_draw(struct dwunw_seed *seed, const void *address)
{
	if (getrandom(seed, sizeof(*seed), GRND_NONBLOCK) != sizeof(*seed))
		seed->word[0] = seed->word[1] = (uint64_t)(uintptr_t)address;
}

static int grow_index(struct dwunw_addr_index *index)
{
	struct dwunw_addr_index larger = {.room = index->room ? 2 * index->room : FIRST_ROOM};

	larger.slots = calloc(larger.room, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	larger.seed = index->seed;
	if (!index->room)
		dwunw_seed_draw(&larger.seed, larger.slots);
	for (size_t i = 0; i < index->room; i++)
		if (index->slots[i].number)
			put_addr(&larger, index->slots[i].addr, index->slots[i].number);
	larger.nr = index->nr;
	free(index->slots);
	*index = larger;
	return 0;
}

int dwunw_addr_index_add(struct dwunw_addr_index *index, uint64_t addr, uint32_t number)
{
	if (number == DWUNW_NOT_FOUND || (2 * index->nr >= index->room && grow_index(index)))
		return -ENOMEM;
	put_addr(index, addr, number + 1);
	index->nr++;
	return 0;
}

void dwunw_addr_index_release(struct dwunw_addr_index *index)
{
	free(index->slots);
	*index = (struct dwunw_addr_index){0};
}
