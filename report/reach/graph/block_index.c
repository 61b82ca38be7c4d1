/* block_index.c - see block_index.h: a table of pages, of a few words for each block */
#include "report/reach/graph/block_index.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "report/base/prefetch.h"

#define SHIFT_MOST  12 /* pages of 4096 bytes */
#define SHIFT_LEAST 8
#define IN_A_PAGE   4	   /* blocks, about */
#define LARGE	    0x4000 /* bytes: a block of more is looked for among the few of its kind */
#define GAP	    16	   /* pages without blocks that are left out of the table */

/* Pages [page, end), of which first[at] and on tell. */
struct page_run {
	uint64_t page, end;
	size_t at;
};

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

/* Go through all blocks, and count large ones, pages and runs of pages; with room for them, they
 * are put there. */
static void lay_out(struct block_index *index)
{
	struct page_run run = {0};
	size_t nr_pages = 0;

	index->nr_large = index->nr_runs = 0;
	for (size_t i = 0; i < index->nr; i++) {
		const struct reach_block *b = &index->blocks[i];
		uint64_t page = first_page(index, b), last = last_page(index, b);

		if (is_large(b)) {
			if (index->large)
				index->large[index->nr_large] = (uint32_t)i;
			index->nr_large++;
			continue;
		}
		if (!index->nr_runs || page > run.end + GAP) {
			run = (struct page_run){page, page, nr_pages};
			index->nr_runs++;
		}
		if (last >= run.end) {
			nr_pages += (size_t)(last + 1 - run.end);
			run.end = last + 1;
		}
		if (!index->runs)
			continue;
		index->runs[index->nr_runs - 1] = run;
		for (; page <= last; page++)
			if (!index->first[run.at + (size_t)(page - run.page)])
				index->first[run.at + (size_t)(page - run.page)] = (uint32_t)i + 1;
	}
	index->nr_pages = nr_pages;
}

int block_index_make(struct block_index *index, const struct reach_block *blocks, size_t nr)
{
	*index = (struct block_index){.blocks = blocks, .nr = nr, .shift = shift_for(blocks, nr)};
	lay_out(index);
	index->runs = calloc(index->nr_runs + 1, sizeof(*index->runs));
	index->first = calloc(index->nr_pages + 1, sizeof(*index->first));
	index->large = calloc(index->nr_large + 1, sizeof(*index->large));
	if (!index->runs || !index->first || !index->large)
		return -ENOMEM;
	lay_out(index);
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

/* The last run that begins at or below @page, plus one; 0: none does. */
static size_t find_run(const struct block_index *index, uint64_t page)
{
	size_t low = 0, high = index->nr_runs;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->runs[middle].page <= page)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* What the table of pages has for @address.  @run, a place in the runs, is where the address before
 * was: often it is the same. */
static const uint32_t *place_of(const struct block_index *index, uint64_t address, size_t *run)
{
	static const uint32_t none;
	uint64_t page = address >> index->shift;
	const struct page_run *r = &index->runs[*run];

	if (page < r->page || page >= r->end) {
		size_t found = find_run(index, page);

		if (!found || page >= index->runs[found - 1].end)
			return &none;
		*run = found - 1;
		r = &index->runs[*run];
	}
	return &index->first[r->at + (size_t)(page - r->page)];
}

/* The block that holds @address, of whose page @first is the first one, plus one, or 0. */
static uint32_t find_from(const struct block_index *index, uint32_t first, uint64_t address)
{
	/* blocks of a page: as many as there are places in it for the smallest */
	for (size_t i = first; i && i <= index->nr && index->blocks[i - 1].start <= address; i++)
		if (holds(&index->blocks[i - 1], address))
			return (uint32_t)i - 1;
	return index->nr_large ? find_large(index, address) : BLOCK_INDEX_NONE;
}

void block_index_find_all(const struct block_index *index, const uint64_t *addresses, size_t nr,
			  uint32_t *found)
{
	const uint32_t *places[BLOCK_INDEX_MOST];
	size_t run = 0;

	for (size_t i = 0; i < nr; i++) {
		places[i] = place_of(index, addresses[i], &run);
		prefetch(places[i]);
	}
	for (size_t i = 0; i < nr; i++) {
		found[i] = *places[i];
		if (found[i])
			prefetch(&index->blocks[found[i] - 1]);
	}
	for (size_t i = 0; i < nr; i++)
		found[i] = find_from(index, found[i], addresses[i]);
}

uint32_t block_index_find(const struct block_index *index, uint64_t address)
{
	uint32_t found;

	block_index_find_all(index, &address, 1, &found);
	return found;
}

void block_index_release(struct block_index *index)
{
	free(index->runs);
	free(index->first);
	free(index->large);
	*index = (struct block_index){0};
}
