/* glibc_walk.c - from chunk to chunk, while the program makes, divides and joins them: see glibc.h
 */
#include <errno.h>

#include "record/heap/glibc.h"

#define PREV_INUSE 1u /* of a chunk's size: the chunk before it is in use */
#define IS_MAPPED  2u
#define NON_MAIN   4u
#define SIZE_BITS  7u

#define SUMMED 256 /* bytes of a block that are compared */
#define AGAIN  16  /* times that a chunk is read which cannot be one */
#define ANEW   4   /* times that a region is walked through */

/* One region's walk. */
struct chain {
	struct glibc *g;
	struct heap_memory *m;
	struct heap_list *list;
	const struct glibc_region *region;
	uint64_t at, top;
	struct heap_block last; /* which is yet to be added, as the next chunk tells its state */
	bool has_last;
};

/* What of a chunk's header is looked at. */
enum chunk_kind { CHUNK_BAD, CHUNK_BLOCK, CHUNK_FENCE };

static enum chunk_kind kind_of(const struct chain *c, uint64_t size)
{
	const uint64_t room = c->region->end - c->at, bytes = size & ~(uint64_t)SIZE_BITS;

	/* two chunks of 16 bytes or less are at the end of memory that the arena's top has left */
	if (bytes <= GLIBC_HEADER && !(size & IS_MAPPED))
		return size & PREV_INUSE ? CHUNK_FENCE : CHUNK_BAD;
	if (bytes < GLIBC_MIN_CHUNK || bytes % 16 || bytes > room || size & IS_MAPPED ||
	    (size & NON_MAIN && c->region->address == c->g->main_arena))
		return CHUNK_BAD;
	return CHUNK_BLOCK;
}

/* Read the block at c->at, of a chunk of @bytes.  Its last word is the next chunk's first. */
static int read_block(struct chain *c, uint64_t bytes, struct heap_block *block)
{
	const uint64_t size = bytes - 8;
	const size_t summed = size < SUMMED ? (size_t)size : SUMMED;
	const uint8_t *contents = heap_memory_peek(c->m, c->at + GLIBC_HEADER, summed);

	if (!contents)
		return -EFAULT;
	*block = (struct heap_block){.address = c->at + GLIBC_HEADER,
				     .size = size,
				     .words = {heap_word(contents), heap_word(contents + 8)},
				     .sum = heap_sum(contents, summed),
				     .arena = c->region->arena};
	return 0;
}

/* The chunk before c->at is known now.  Returns as heap_list_add(). */
static int add_last(struct chain *c, bool in_use)
{
	if (!c->has_last)
		return 0;
	c->has_last = false;
	c->last.state = in_use ? MLK_HEAP_USED : MLK_HEAP_FREE;
	return heap_list_add(c->list, &c->last);
}

static int add_top(struct chain *c)
{
	struct heap_block top = {.address = c->at + GLIBC_HEADER,
				 .size = c->region->end - c->at - GLIBC_HEADER,
				 .arena = c->region->arena,
				 .state = MLK_HEAP_TOP};

	return c->region->end - c->at > GLIBC_HEADER ? heap_list_add(c->list, &top) : 0;
}

/* Is the end of the arena's chunks at c->at? It may have moved. */
static bool is_top(struct chain *c)
{
	if (c->at == c->top)
		c->top = glibc_top(c->g, c->m, c->region->address);
	if (c->at == c->top)
		return true;
	heap_memory_forget(c->m);
	return false;
}

/* Take the chunk at c->at.  Returns 1, 0 at the end, -EAGAIN: it can be none; or as
 * heap_list_add().
 */
static int take_chunk(struct chain *c)
{
	struct heap_block block;
	const uint8_t *header;
	uint64_t size;
	int err;

	if (c->at == c->top && is_top(c)) {
		err = add_last(c, true);
		return err ? err : add_top(c);
	}
	header = heap_memory_peek(c->m, c->at, GLIBC_HEADER);
	if (!header)
		return -EAGAIN;
	size = heap_word(header + 8);
	switch (kind_of(c, size)) {
	case CHUNK_BAD:
		return -EAGAIN;
	case CHUNK_FENCE:
		/* a top too small to be divided became a block, and an empty chunk behind it */
		if (size <= SIZE_BITS && c->has_last && c->last.size == GLIBC_MIN_CHUNK - 8)
			c->has_last = false;
		return add_last(c, true);
	default:
		if (read_block(c, size & ~(uint64_t)SIZE_BITS, &block))
			return -EAGAIN;
	}
	err = add_last(c, size & PREV_INUSE);
	c->last = block;
	c->has_last = true;
	c->at += size & ~(uint64_t)SIZE_BITS;
	return err ? err : 1;
}

/* Walk from the beginning to the end.  Returns 0, -EAGAIN: it came to what can be no chunk, and not
 * further; -ECANCELED, or as heap_list_add(). */
static int walk_once(struct chain *c)
{
	int more = 1, tries = 0;

	heap_memory_forget(c->m);
	c->at = c->region->start;
	c->top = glibc_top(c->g, c->m, c->region->address);
	c->has_last = false;
	while (more > 0 && c->region->end - c->at >= GLIBC_HEADER) {
		if (heap_memory_stopped(c->m))
			return -ECANCELED;
		more = take_chunk(c);
		if (more == -EAGAIN && ++tries < AGAIN) {
			heap_memory_forget(c->m);
			more = 1;
		} else if (more > 0) {
			tries = 0;
		}
	}
	return more > 0 ? add_last(c, true) : more;
}

static int walk_region(struct glibc *g, struct heap_memory *m, struct heap_list *list,
		       const struct glibc_region *region)
{
	struct chain c = {.g = g, .m = m, .list = list, .region = region};
	const size_t before = list->nr;
	int err = -EAGAIN;

	for (int i = 0; err == -EAGAIN && i < ANEW; i++) {
		list->nr = before;
		err = walk_once(&c);
	}
	/* what was met before that is sound */
	if (err == -EAGAIN)
		g->unwalked += region->end - c.at;
	return err == -EAGAIN ? 0 : err;
}

/* What the main arena has beyond brk(2)'s memory. */
static uint64_t elsewhere(const struct glibc *g, const struct heap_memory *m)
{
	uint64_t all = g->main_arena ? glibc_system_memory(g, m, g->main_arena) : 0;

	for (size_t i = 0; i < g->nr_regions; i++) {
		const struct glibc_region *r = &g->regions[i];

		if (r->address == g->main_arena)
			all = all > r->end - r->start ? all - (r->end - r->start) : 0;
	}
	return all;
}

int glibc_walk(struct glibc *g, struct heap_memory *m, struct heap_list *list)
{
	int err = glibc_find_arenas(g, m);

	list->nr = 0;
	g->unwalked = elsewhere(g, m) + g->lost;
	for (size_t i = 0; i < g->nr_regions && !err; i++)
		err = walk_region(g, m, list, &g->regions[i]);
	if (!err)
		err = glibc_walk_mapped(g, m, list);
	if (err)
		return err;
	heap_list_sort(list);
	return glibc_mark_free(g, m, list);
}
