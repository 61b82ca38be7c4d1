/* block_index.c - see block_index.h */
#include "report/reach/block_index.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/hash_index.h"

#define SHIFT_MOST  12 /* pages of 4096 bytes */
#define SHIFT_LEAST 8
#define IN_A_PAGE   4	   /* blocks, about */
#define LARGE	    0x4000 /* bytes: a block of more is looked for among the few of its kind */

/* A page; first is plus one, 0: the slot is empty. */
struct page_slot {
	uint64_t page;
	uint32_t first;
};

/* Where the slot of @page is, if it is not behind others. */
static size_t place_of_hash(const struct block_index *index, uint64_t page)
{
	return (size_t)hash_address(page) & (index->nr_slots - 1);
}

static size_t place_of(const struct block_index *index, uint64_t page)
{
	size_t at = place_of_hash(index, page);

	while (index->slots[at].first && index->slots[at].page != page)
		at = (at + 1) & (index->nr_slots - 1);
	return at;
}

static uint64_t first_page(const struct block_index *index, const struct reach_block *b)
{
	return b->start >> index->shift;
}

/* The last page that @b reaches into; one without bytes has its own. */
static uint64_t last_page(const struct block_index *index, const struct reach_block *b)
{
	return (b->end > b->start ? b->end - 1 : b->start) >> index->shift;
}

static bool is_large(const struct reach_block *b)
{
	return b->end - b->start > LARGE;
}

/* Pages in which there are a few blocks each, for what most blocks need. */
static unsigned int shift_for(const struct reach_block *blocks, size_t nr)
{
	unsigned int shift = SHIFT_MOST;
	uint64_t bytes = 0, small = 0;

	for (size_t i = 0; i < nr; i++) {
		if (is_large(&blocks[i]))
			continue;
		bytes += blocks[i].end - blocks[i].start;
		small++;
	}
	while (shift > SHIFT_LEAST && small && bytes / small * IN_A_PAGE < UINT64_C(1) << shift)
		shift--;
	return shift;
}

/* How many slots and large blocks there will be, at most. */
static void count(const struct block_index *index, size_t *pages, size_t *large)
{
	uint64_t before = UINT64_MAX;

	*pages = *large = 0;
	for (size_t i = 0; i < index->nr; i++) {
		const struct reach_block *b = &index->blocks[i];

		if (is_large(b)) {
			(*large)++;
			continue;
		}
		*pages += (size_t)(last_page(index, b) - (first_page(index, b))) +
			  (first_page(index, b) != before);
		before = last_page(index, b);
	}
}

int block_index_make(struct block_index *index, const struct reach_block *blocks, size_t nr)
{
	size_t pages, large;

	*index = (struct block_index){
		.blocks = blocks, .nr = nr, .nr_slots = 16, .shift = shift_for(blocks, nr)};
	count(index, &pages, &large);
	while (index->nr_slots / 2 < pages)
		index->nr_slots *= 2;
	index->slots = calloc(index->nr_slots, sizeof(*index->slots));
	index->large = calloc(large + 1, sizeof(*index->large));
	if (!index->slots || !index->large)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		if (is_large(&blocks[i])) {
			index->large[index->nr_large++] = (uint32_t)i;
			continue;
		}
		for (uint64_t page = first_page(index, &blocks[i]);
		     page <= last_page(index, &blocks[i]); page++) {
			struct page_slot *slot = &index->slots[place_of(index, page)];

			if (!slot->first)
				*slot = (struct page_slot){page, (uint32_t)i + 1};
		}
	}
	return 0;
}

static bool holds(const struct reach_block *b, uint64_t address)
{
	return address >= b->start && (address < b->end || address == b->start);
}

/* The last large block that begins at or below @address. */
static uint32_t find_large(const struct block_index *index, uint64_t address)
{
	size_t low = 0, high = index->nr_large;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->blocks[index->large[middle]].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && holds(&index->blocks[index->large[low - 1]], address) ? index->large[low - 1]
									    : BLOCK_INDEX_NONE;
}

uint32_t block_index_find(const struct block_index *index, uint64_t address)
{
	uint64_t page = address >> index->shift;
	const struct page_slot *slot;

	if (!index->nr)
		return BLOCK_INDEX_NONE;
	slot = &index->slots[place_of(index, page)];
	if (!slot->first)
		return index->nr_large ? find_large(index, address) : BLOCK_INDEX_NONE;
	/* blocks of a page: as many as there are places in it for the smallest */
	for (size_t i = slot->first - 1; i < index->nr && index->blocks[i].start <= address; i++)
		if (holds(&index->blocks[i], address))
			return (uint32_t)i;
	return index->nr_large ? find_large(index, address) : BLOCK_INDEX_NONE;
}

void block_index_expect(const struct block_index *index, uint64_t address)
{
	if (index->nr)
		__builtin_prefetch(&index->slots[place_of_hash(index, address >> index->shift)]);
}

void block_index_expect_block(const struct block_index *index, uint64_t address)
{
	const struct page_slot *slot;

	if (!index->nr)
		return;
	slot = &index->slots[place_of_hash(index, address >> index->shift)];
	if (slot->first) {
		__builtin_prefetch(&index->blocks[slot->first - 1]);
		__builtin_prefetch(&index->blocks[slot->first]);
	}
}

void block_index_release(struct block_index *index)
{
	free(index->slots);
	free(index->large);
	*index = (struct block_index){0};
}
