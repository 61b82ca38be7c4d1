/* reach_pass.c - see reach_pass.h */
#include "report/reach/reach_pass.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"

#define RED_ZONE 128	    /* bytes below the stack pointer that are in use, psABI 3.2.2 */
#define LONGEST	 (8u << 20) /* bytes below it that may have been of the same stack */
#define SP	 7	    /* DWARF number, psABI figure 3.36 */
#define INTERIOR (UINT64_C(1) << 63)

/* glibc's malloc: a block's last eight bytes are the first of the next chunk's header, to which the
 * words of an arena point.  That of the main thread is in the C library's data, others at the
 * beginning of a heap. */
#define CHUNK_HEADER 8
#define CHUNK_ALIGN  16
#define HEAP_ALIGN   (64u << 20)
#define ARENA_BYTES  4096

/* A word in block from that points to block to. */
struct edge {
	uint32_t from, to;
};

struct reach_pass {
	const struct reach_world *world;
	const struct mlk_pass *pass;
	struct reach_area *unused; /* parts of stacks; ascending */
	size_t nr_unused;
	/* where the walks through the blocks begin, by class; an interior pointer has INTERIOR */
	struct list {
		uint64_t *all;
		size_t nr, room;
	} roots, stale;
	struct edge *starts, *interiors; /* ascending by from */
	size_t nr_starts, room_starts, nr_interiors, room_interiors;
	/* walks: the words come in the order of their addresses */
	size_t next_freed, next_unused;
	uint32_t source; /* block that holds the word before, at this address */
	uint64_t address;
};

static int by_start(const void *a, const void *b)
{
	const struct reach_area *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* The range that holds @address; NULL: none. */
static const struct mlk_range *range_of(const struct mlk_pass *pass, uint64_t address, size_t *at)
{
	size_t low = 0, high = pass->nr_ranges;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pass->ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= pass->ranges[low - 1].end)
		return NULL;
	*at = low - 1;
	return &pass->ranges[low - 1];
}

/* Below the stack pointer of each thread lies what its frames of before have left, down to where
 * its stack ends.  A range that goes on below has other things, too. */
static int find_unused(struct reach_pass *p)
{
	const struct mlk_pass *pass = p->pass;

	p->unused = calloc(pass->nr_threads + 1, sizeof(*p->unused));
	if (!p->unused)
		return -ENOMEM;
	for (size_t i = 0; i < pass->nr_threads; i++) {
		const struct mlk_reach_thread *t = &pass->threads[i];
		uint64_t sp = t->regs[SP];
		const struct mlk_range *range;
		size_t at;

		if (!(t->known >> SP & 1))
			continue;
		range = range_of(pass, sp, &at);
		if (!range || sp - range->start <= RED_ZONE || sp - range->start > LONGEST ||
		    (at && pass->ranges[at - 1].end == range->start) ||
		    block_index_find(p->world->index, sp) != BLOCK_INDEX_NONE)
			continue;
		p->unused[p->nr_unused++] = (struct reach_area){range->start, sp - RED_ZONE};
	}
	qsort(p->unused, p->nr_unused, sizeof(*p->unused), by_start);
	return 0;
}

static int add(struct list *list, uint64_t what)
{
	return array_append(&list->all, &list->nr, &list->room, &what, sizeof(what));
}

/* A word outside of all blocks points to @address. */
static int add_root(struct reach_pass *p, struct list *list, uint64_t address)
{
	uint32_t to = block_index_find(p->world->index, address);

	if (to == BLOCK_INDEX_NONE)
		return 0;
	return add(list, p->world->index->blocks[to].start == address ? to : to | INTERIOR);
}

static uint64_t untagged(const struct reach_pass *p, uint64_t word)
{
	return word & ~p->world->tag_mask;
}

static int add_given(struct reach_pass *p)
{
	int err = 0;

	for (size_t i = 0; i < p->pass->nr_threads && !err; i++)
		for (int reg = 0; reg < MLK_REACH_REGS && !err; reg++)
			if (p->pass->threads[i].known >> reg & 1)
				err = add_root(p, &p->roots,
					       untagged(p, p->pass->threads[i].regs[reg]));
	for (size_t i = 0; i < p->pass->nr_roots && !err; i++)
		err = add_root(p, &p->roots, untagged(p, p->pass->roots[i].value));
	return err;
}

int reach_pass_new(struct reach_pass **out, const struct reach_world *world,
		   const struct mlk_pass *pass)
{
	struct reach_pass *p = calloc(1, sizeof(*p));
	int err;

	*out = NULL;
	if (!p)
		return -ENOMEM;
	p->world = world;
	p->pass = pass;
	p->source = BLOCK_INDEX_NONE;
	err = find_unused(p);
	if (!err)
		err = add_given(p);
	if (err)
		reach_pass_free(p);
	else
		*out = p;
	return err;
}

/* Does one of @areas hold @address?  *@next is the first that may, as addresses ascend. */
static bool in_area(const struct reach_area *areas, size_t nr, size_t *next, uint64_t address)
{
	while (*next < nr && areas[*next].end <= address)
		(*next)++;
	return *next < nr && areas[*next].start <= address;
}

/* The block that holds @address, which is not below the word before. */
static uint32_t source_of(struct reach_pass *p, uint64_t address)
{
	const struct block_index *index = p->world->index;

	if (p->source == BLOCK_INDEX_NONE || address >= index->blocks[p->source].end)
		p->source = block_index_find(index, address);
	return p->source;
}

/* Is @address where glibc has its arenas? */
static bool is_arena(const struct reach_pass *p, uint64_t address)
{
	size_t at;
	const struct mlk_range *range = range_of(p->pass, address, &at);
	const char *name = range ? strrchr(range->path, '/') : NULL;

	if (!range || !range->path[0])
		return range && address % HEAP_ALIGN < ARENA_BYTES;
	return name && (!strncmp(name, "/libc.so", 8) || !strncmp(name, "/libc-2.", 8));
}

/* Is @word one of the allocator's own, which points behind block @to and not into it? */
static bool is_arenas(const struct reach_pass *p, const struct mlk_pointer *word, uint32_t to)
{
	const struct reach_block *b = &p->world->index->blocks[to];

	return word->value % CHUNK_ALIGN == 0 && word->value + CHUNK_HEADER >= b->end &&
	       is_arena(p, word->address);
}

static int take_word(struct reach_pass *p, const struct mlk_pointer *word)
{
	const struct reach_world *w = p->world;
	uint64_t address = untagged(p, word->value);
	uint32_t to = block_index_find(w->index, address);
	bool start = to != BLOCK_INDEX_NONE && w->index->blocks[to].start == address;
	struct edge edge = {.to = to};

	if (to == BLOCK_INDEX_NONE)
		return 0;
	edge.from = source_of(p, word->address);
	if (edge.from == to)
		return 0;
	if (edge.from != BLOCK_INDEX_NONE)
		return start ? array_append(&p->starts, &p->nr_starts, &p->room_starts, &edge,
					    sizeof(edge))
			     : array_append(&p->interiors, &p->nr_interiors, &p->room_interiors,
					    &edge, sizeof(edge));
	if (in_area(w->freed, w->nr_freed, &p->next_freed, word->address) ||
	    in_area(p->unused, p->nr_unused, &p->next_unused, word->address))
		return add(&p->stale, start ? to : to | INTERIOR);
	if (!start && is_arenas(p, word, to))
		return 0;
	return add(&p->roots, start ? to : to | INTERIOR);
}

int reach_pass_words(struct reach_pass *p, const struct mlk_pointer *words, size_t nr)
{
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		if (words[i].address < p->address)
			return -EINVAL;
		p->address = words[i].address;
		err = take_word(p, &words[i]);
	}
	return err;
}

/* Edges by block: those of block i are edges[first[i]] to edges[first[i + 1]] - 1. */
struct edges {
	const struct edge *all;
	size_t *first;
};

static int index_edges(struct edges *edges, const struct edge *all, size_t nr, size_t blocks)
{
	size_t at = 0;

	*edges = (struct edges){all, calloc(blocks + 1, sizeof(*edges->first))};
	if (!edges->first)
		return -ENOMEM;
	for (size_t i = 0; i <= blocks; i++) {
		while (at < nr && all[at].from < i)
			at++;
		edges->first[i] = at;
	}
	return 0;
}

/* A walk from block to block. */
struct walk {
	struct edges starts, interiors;
	uint8_t *class; /* by block, of this pass */
	uint32_t *stack;
	size_t nr;
};

static void reach(struct walk *w, uint32_t block, enum reach_class class)
{
	if (w->class[block] >= class)
		return;
	w->class[block] = (uint8_t) class;
	w->stack[w->nr++] = block;
}

static void follow(struct walk *w, const struct edges *edges, uint32_t from, enum reach_class class)
{
	for (size_t i = edges->first[from]; i < edges->first[from + 1]; i++)
		reach(w, edges->all[i].to, class);
}

/* Give @class to all that can be reached from what is on the stack, by beginnings alone or not. */
static void walk_on(struct walk *w, bool interiors, enum reach_class class)
{
	while (w->nr) {
		uint32_t block = w->stack[--w->nr];

		follow(w, &w->starts, block, class);
		if (interiors)
			follow(w, &w->interiors, block, class);
	}
}

static void reach_list(struct walk *w, const struct list *list, bool interior,
		       enum reach_class class)
{
	for (size_t i = 0; i < list->nr; i++)
		if (!!(list->all[i] & INTERIOR) == interior)
			reach(w, (uint32_t)list->all[i], class);
}

/* What a root reaches by beginnings; then what it reaches at all, and last what only stale words
 * do. */
static void walk_all(const struct reach_pass *p, struct walk *w)
{
	bool interiors = !p->world->starts_only;
	size_t nr = p->world->index->nr;

	reach_list(w, &p->roots, false, REACH_HELD);
	walk_on(w, false, REACH_HELD);
	if (interiors) {
		reach_list(w, &p->roots, true, REACH_POSSIBLE);
		for (uint32_t i = 0; i < nr; i++)
			if (w->class[i] == REACH_HELD)
				follow(w, &w->interiors, i, REACH_POSSIBLE);
		walk_on(w, true, REACH_POSSIBLE);
	}
	reach_list(w, &p->stale, false, REACH_STALE);
	if (interiors)
		reach_list(w, &p->stale, true, REACH_STALE);
	walk_on(w, interiors, REACH_STALE);
}

int reach_pass_judge(struct reach_pass *p, uint8_t *classes)
{
	size_t nr = p->world->index->nr;
	struct walk w = {.class = calloc(nr + 1, 1), .stack = calloc(nr + 1, sizeof(*w.stack))};
	int err = w.class && w.stack ? 0 : -ENOMEM;

	if (!err)
		err = index_edges(&w.starts, p->starts, p->nr_starts, nr);
	if (!err)
		err = index_edges(&w.interiors, p->interiors, p->nr_interiors, nr);
	if (!err) {
		walk_all(p, &w);
		for (size_t i = 0; i < nr; i++)
			if (classes[i] < w.class[i])
				classes[i] = w.class[i];
	}
	free(w.starts.first);
	free(w.interiors.first);
	free(w.class);
	free(w.stack);
	return err;
}

static void point(const struct edge *edges, size_t nr, const uint8_t *classes, bool *pointed)
{
	for (size_t i = 0; i < nr; i++)
		if (classes[edges[i].from] == REACH_LOST && classes[edges[i].to] == REACH_LOST)
			pointed[edges[i].to] = true;
}

void reach_pass_lost_with(const struct reach_pass *p, const uint8_t *classes, bool *pointed)
{
	point(p->starts, p->nr_starts, classes, pointed);
	if (!p->world->starts_only)
		point(p->interiors, p->nr_interiors, classes, pointed);
}

void reach_pass_free(struct reach_pass *p)
{
	if (!p)
		return;
	free(p->unused);
	free(p->roots.all);
	free(p->stale.all);
	free(p->starts);
	free(p->interiors);
	free(p);
}
