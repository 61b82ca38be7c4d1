/* glibc_mapped.c - blocks of glibc that have mappings of their own: see glibc.h
 *
 * Nothing points to all of them.  Each has its chunk's header at the beginning of a page; one that
 * was to be aligned has another one behind that.  The allocator knows how many bytes they have
 * together; what does not add up to that is not believed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/trace.h"
#include "record/heap/glibc.h"
#include "record/target/pages.h"

#define IS_MAPPED     2u
#define SIZE_BITS     7u
#define IN_HUGE_PAGES 1u /* of the word before the size, from version 2.43 on */
#define SUMMED	      256
#define MOST_PAGES    (UINT64_C(1) << 24) /* that are looked at */

/* The walk through all memory that may have some. */
struct search {
	const struct glibc *g;
	struct heap_memory *m;
	struct heap_list *list;
	uint64_t left; /* bytes yet to be found */
	uint64_t pages;
	uint64_t behind; /* the end of the block before */
};

/* May @range have such blocks? */
static bool may_have(const struct mlk_range *range)
{
	return range->perms & MLK_PERM_W && (!range->path[0] || !strncmp(range->path, "[anon:", 6));
}

static bool is_arenas(const struct glibc *g, uint64_t at)
{
	for (size_t i = 0; i < g->nr_regions; i++)
		if (at >= (g->regions[i].start & ~(uint64_t)(HEAP_PAGE - 1)) &&
		    at < g->regions[i].end)
			return true;
	return false;
}

/* Does a chunk begin at @at of which @lead bytes of its mapping lie before? *@bytes is the whole
 * mapping's size, which ends by @end; *@spare those behind the block.  From version 2.43 on the
 * chunk's own size is less by a header, and as in an arena its last word is not the block's. */
static bool is_chunk(const struct search *s, uint64_t at, uint64_t lead, uint64_t end,
		     uint64_t *bytes, uint64_t *spare)
{
	uint64_t header[2], size;

	*spare = 0;
	if (at >= end || heap_memory_read_present(s->m, at, header, sizeof(header)) ||
	    (header[1] & SIZE_BITS) != IS_MAPPED || (header[0] & ~(uint64_t)IN_HUGE_PAGES) != lead)
		return false;
	size = header[1] & ~(uint64_t)SIZE_BITS;
	if ((lead + size) % HEAP_PAGE) {
		size += GLIBC_HEADER;
		*spare = 8;
	}
	*bytes = lead + size;
	return *bytes % HEAP_PAGE == 0 && size >= GLIBC_MIN_CHUNK && size <= end - at &&
	       *bytes <= s->left;
}

/* The mapping at @start, of @bytes, has a chunk.  One that was to be aligned has a second header
 * behind the first: returns where it is. */
static uint64_t find_aligned(const struct search *s, uint64_t start, uint64_t bytes)
{
	for (uint64_t align = HEAP_PAGE; align && align <= bytes; align *= 2) {
		uint64_t block = (start + GLIBC_HEADER + align - 1) & ~(align - 1), whole, spare;

		if (is_chunk(s, block - GLIBC_HEADER, block - GLIBC_HEADER - start, start + bytes,
			     &whole, &spare) &&
		    whole == bytes)
			return block - GLIBC_HEADER;
	}
	return start;
}

static int add_block(struct search *s, uint64_t at, uint64_t bytes)
{
	const uint8_t *contents;
	struct heap_block block = {.address = at + GLIBC_HEADER,
				   .size = bytes - GLIBC_HEADER,
				   .state = MLK_HEAP_USED,
				   .arena = HEAP_NO_ARENA};
	size_t summed = block.size < SUMMED ? (size_t)block.size : SUMMED;

	contents = heap_memory_peek(s->m, block.address, summed);
	if (!contents)
		return 0;
	block.words[0] = heap_word(contents);
	block.words[1] = heap_word(contents + 8);
	block.sum = heap_sum(contents, summed);
	return heap_list_add(s->list, &block);
}

/* Look at the page at @page for the beginning of a block. */
static int look(struct search *s, uint64_t page, uint64_t end)
{
	uint64_t bytes, at, spare;

	if (!is_chunk(s, page, 0, end, &bytes, &spare))
		return 0;
	at = find_aligned(s, page, bytes);
	s->left -= bytes;
	s->behind = page + bytes;
	return add_block(s, at, bytes - (at - page) - spare);
}

static int search_range(struct search *s, const struct mlk_range *range, struct pages *pages)
{
	uint64_t from, to;
	int more, err = 0;

	pages_begin(pages, range->start);
	s->behind = range->start;
	while (s->left && (more = pages_next(pages, range->end, &from, &to)) > 0)
		for (uint64_t page = from; page < to && s->left; page += HEAP_PAGE) {
			if (heap_memory_stopped(s->m))
				return -ECANCELED;
			if (page < s->behind || is_arenas(s->g, page))
				continue;
			if (s->pages++ >= MOST_PAGES)
				return 0;
			err = look(s, page, range->end);
			if (err)
				return err;
		}
	return 0;
}

int glibc_walk_mapped(struct glibc *g, struct heap_memory *m, struct heap_list *list)
{
	const uint64_t all = glibc_mapped_memory(g, m);
	struct search s = {.g = g, .m = m, .list = list, .left = all};
	struct pages *pages = all ? calloc(1, sizeof(*pages)) : NULL;
	const size_t before = list->nr;
	int err = 0;

	if (!all)
		return 0;
	if (!pages)
		return -ENOMEM;
	pages->fd = m->pagemap;
	for (size_t i = 0; i < m->nr && s.left && !err; i++)
		if (may_have(&m->ranges[i]))
			err = search_range(&s, &m->ranges[i], pages);
	free(pages);
	g->unwalked += s.left;
	for (size_t i = before; s.left && i < list->nr; i++)
		list->v[i].state = MLK_HEAP_CHANGED;
	return err;
}
