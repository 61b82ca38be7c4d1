/* reach_pass.c - see reach_pass.h */
#include "report/reach/graph/reach_pass.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"

#define RED_ZONE 128	    /* bytes below the stack pointer that are in use, psABI 3.2.2 */
#define LONGEST	 (8u << 20) /* bytes below it that may have been of the same stack */
#define SP	 7	    /* DWARF number, psABI figure 3.36 */

/* glibc's malloc: a block's last eight bytes are the first of the next chunk's header, to which the
 * words of an arena point.  That of the main thread is in the C library's data, others at the
 * beginning of a heap. */
#define CHUNK_HEADER 8
#define CHUNK_ALIGN  16
#define HEAP_ALIGN   (64u << 20)
#define ARENA_BYTES  4096

struct reach_pass {
	const struct reach_world *world;
	const struct mlk_pass *pass;
	struct reach_area *unused; /* parts of stacks; ascending */
	size_t nr_unused;
	struct reach_graph graph;
	uint8_t *classes; /* after reach_pass_judge() */
	/* walks: the words come in the order of their addresses */
	size_t next_freed, next_unused, next_arena, next_chosen;
	uint32_t next_block; /* no block before it holds a word that is still to come */
	size_t next_first;   /* of graph.first, that is not set yet */
	uint64_t address;    /* of the word before */
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

		/* one that ran has had other stack pointers, too */
		if (!(t->known >> SP & 1) || t->how == MLK_REACH_SAMPLED)
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

static uint32_t number_of_root(const struct reach_pass *p, enum reach_root kind, uint64_t where,
			       bool stale)
{
	const struct reach_roots *roots = p->world->roots;

	return roots ? roots->number(roots->arg, kind, where, stale) : 0;
}

static uint32_t block_with_strength(const struct reach_world *world, uint32_t to, uint64_t address)
{
	return world->index->blocks[to].start == address ? to : to | REACH_INTERIOR;
}

/* A register or something of the kernel's is @value. */
static int add_given_root(struct reach_pass *p, enum reach_root kind, size_t at, uint64_t value)
{
	struct reach_graph *g = &p->graph;
	uint32_t to = block_index_find(p->world->index, value);
	struct reach_word word;

	if (to == BLOCK_INDEX_NONE)
		return 0;
	word = (struct reach_word){block_with_strength(p->world, to, value),
				   number_of_root(p, kind, at, false)};
	return array_append(&g->roots, &g->nr_roots, &g->room_roots, &word, sizeof(word));
}

static uint64_t untagged(const struct reach_world *world, uint64_t word)
{
	return word & ~world->tag_mask;
}

static int add_given(struct reach_pass *p)
{
	int err = 0;

	for (size_t i = 0; i < p->pass->nr_threads && !err; i++)
		for (int reg = 0; reg < MLK_REACH_REGS && !err; reg++)
			if (p->pass->threads[i].known >> reg & 1)
				err = add_given_root(
					p, REACH_ROOT_THREAD, i,
					untagged(p->world, p->pass->threads[i].regs[reg]));
	for (size_t i = 0; i < p->pass->nr_roots && !err; i++)
		err = add_given_root(p, REACH_ROOT_GIVEN, i,
				     untagged(p->world, p->pass->roots[i].value));
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
	p->graph.nr = world->index->nr;
	p->graph.first = calloc(p->graph.nr + 1, sizeof(*p->graph.first));
	err = p->graph.first ? find_unused(p) : -ENOMEM;
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
	uint32_t i = p->next_block;

	while (i < index->nr && index->blocks[i].end <= address && index->blocks[i].start < address)
		i++;
	p->next_block = i;
	return i < index->nr && index->blocks[i].start <= address ? i : BLOCK_INDEX_NONE;
}

/* Is @address where glibc usually has its arenas? */
static bool is_arena(const struct reach_pass *p, uint64_t address)
{
	size_t at;
	const struct mlk_range *range = range_of(p->pass, address, &at);
	const char *name = range ? strrchr(range->path, '/') : NULL;

	if (!range || !range->path[0])
		return range && address % HEAP_ALIGN < ARENA_BYTES;
	return name && (!strncmp(name, "/libc.so", 8) || !strncmp(name, "/libc-2.", 8));
}

/* Does @word point to the chunk behind block @to, and not into it? */
static bool is_behind(const struct reach_pass *p, const struct mlk_pointer *word, uint32_t to)
{
	const struct reach_block *b = &p->world->index->blocks[to];

	return word->value != b->start && word->value % CHUNK_ALIGN == 0 &&
	       word->value + CHUNK_HEADER >= b->end;
}

/* A word in block @from, which is not below the one before. */
static int add_edge(struct reach_pass *p, uint32_t from, uint32_t to)
{
	struct reach_graph *g = &p->graph;

	if (g->nr_to >= UINT32_MAX)
		return -ENOMEM;
	while (p->next_first <= from)
		g->first[p->next_first++] = (uint32_t)g->nr_to;
	return array_append(&g->to, &g->nr_to, &g->room_to, &to, sizeof(to));
}

/* @word, which is in no block, points to block @to.  The allocator's own words, which are in free
 * memory, too, lead from chunk to chunk. */
static int take_root(struct reach_pass *p, const struct mlk_pointer *word, uint32_t to,
		     struct reach_word root)
{
	const struct reach_world *w = p->world;
	struct reach_graph *g = &p->graph;
	bool stale = in_area(w->freed, w->nr_freed, &p->next_freed, word->address);

	if (in_area(w->arenas, w->nr_arenas, &p->next_arena, word->address) ||
	    (is_behind(p, word, to) && (stale || is_arena(p, word->address))))
		return 0;
	stale |= in_area(p->unused, p->nr_unused, &p->next_unused, word->address);
	root.root = number_of_root(p, REACH_ROOT_WORD, word->address, stale);
	return stale ? array_append(&g->stale, &g->nr_stale, &g->room_stale, &root, sizeof(root))
		     : array_append(&g->roots, &g->nr_roots, &g->room_roots, &root, sizeof(root));
}

/* Does @word, which begins in block @from, end behind it?  Then a part of it is what was there
 * before the block, and no pointer of the program's. */
static bool is_cut(const struct reach_pass *p, uint32_t from, const struct mlk_pointer *word)
{
	return p->world->index->blocks[from].end - word->address < sizeof(word->value);
}

/* The user says that @word holds what it points to. */
static int take_chosen(struct reach_pass *p, const struct mlk_pointer *word, struct reach_word root)
{
	struct reach_graph *g = &p->graph;

	root.root = number_of_root(p, REACH_ROOT_WORD, word->address, false);
	return array_append(&g->roots, &g->nr_roots, &g->room_roots, &root, sizeof(root));
}

/* @word points to block @to, which may have REACH_INTERIOR. */
static int take_word(struct reach_pass *p, const struct mlk_pointer *word, uint32_t to)
{
	const struct reach_world *w = p->world;
	uint32_t from = source_of(p, word->address);
	struct reach_word root = {.to = to};

	if (in_area(w->chosen, w->nr_chosen, &p->next_chosen, word->address)) {
		int err = take_chosen(p, word, root);

		if (err || from == BLOCK_INDEX_NONE)
			return err;
	}
	if (from == (to & ~REACH_INTERIOR) || (from != BLOCK_INDEX_NONE && is_cut(p, from, word)))
		return 0;
	return from != BLOCK_INDEX_NONE ? add_edge(p, from, to)
					: take_root(p, word, to & ~REACH_INTERIOR, root);
}

void reach_world_find(const struct reach_world *world, const struct mlk_pointer *words, size_t nr,
		      uint32_t *to)
{
	uint64_t values[BLOCK_INDEX_MOST];

	for (size_t at = 0, some; at < nr; at += some) {
		some = nr - at < BLOCK_INDEX_MOST ? nr - at : BLOCK_INDEX_MOST;
		for (size_t i = 0; i < some; i++)
			values[i] = untagged(world, words[at + i].value);
		block_index_find_all(world->index, values, some, to + at);
		for (size_t i = 0; i < some; i++)
			if (to[at + i] != BLOCK_INDEX_NONE)
				to[at + i] = block_with_strength(world, to[at + i], values[i]);
	}
}

int reach_pass_words(struct reach_pass *p, const struct mlk_pointer *words, const uint32_t *to,
		     size_t nr)
{
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		if (words[i].address < p->address)
			return -EINVAL;
		p->address = words[i].address;
		if (to[i] != BLOCK_INDEX_NONE)
			err = take_word(p, &words[i], to[i]);
	}
	return err;
}

/* A walk from block to block. */
struct walk {
	const struct reach_graph *graph;
	uint8_t *class;	 /* by block, of this pass */
	uint32_t *queue; /* all blocks that were reached */
	size_t nr, next; /* next: the first one whose words were not followed */
};

static void reach(struct walk *w, uint32_t block, enum reach_class class)
{
	if (w->class[block] >= class)
		return;
	w->class[block] = (uint8_t) class;
	w->queue[w->nr++] = block;
}

/* Follow the words of block @from: those that point to beginnings, and others. */
static void follow(struct walk *w, uint32_t from, bool starts, bool interiors,
		   enum reach_class class)
{
	const struct reach_graph *g = w->graph;

	for (size_t i = g->first[from]; i < g->first[from + 1]; i++)
		if (g->to[i] & REACH_INTERIOR ? interiors : starts)
			reach(w, g->to[i] & ~REACH_INTERIOR, class);
}

/* Give @class to all that can be reached from what is in the queue, by beginnings alone or not. */
static void walk_on(struct walk *w, bool interiors, enum reach_class class)
{
	for (; w->next < w->nr; w->next++) {
		reach_graph_expect(w->graph, w->queue, w->next, w->nr, w->class, 1);
		follow(w, w->queue[w->next], true, interiors, class);
	}
	w->nr = w->next = 0;
}

static void reach_list(struct walk *w, const struct reach_word *all, size_t nr, bool interior,
		       enum reach_class class)
{
	for (size_t i = 0; i < nr; i++)
		if (!!(all[i].to & REACH_INTERIOR) == interior)
			reach(w, all[i].to & ~REACH_INTERIOR, class);
}

/* The beginnings that roots point to which are no stacks. */
static void reach_lasting(struct walk *w, const struct reach_roots *roots)
{
	const struct reach_graph *g = w->graph;

	for (size_t i = 0; i < g->nr_roots; i++)
		if (!(g->roots[i].to & REACH_INTERIOR) &&
		    !roots->is_stack(roots->arg, g->roots[i].root))
			reach(w, g->roots[i].to, REACH_HELD);
}

/* What a root reaches by beginnings; then what it reaches at all, and last what only stale words
 * do. */
static void walk_all(const struct reach_pass *p, struct walk *w)
{
	const struct reach_graph *g = &p->graph;
	const struct reach_roots *roots = p->world->roots;
	enum reach_class held = roots ? REACH_STACK : REACH_HELD;
	bool interiors = !p->world->starts_only;

	if (roots) {
		reach_lasting(w, roots);
		walk_on(w, false, REACH_HELD);
	}
	reach_list(w, g->roots, g->nr_roots, false, held);
	walk_on(w, false, held);
	if (interiors) {
		reach_list(w, g->roots, g->nr_roots, true, REACH_POSSIBLE);
		for (uint32_t i = 0; i < g->nr; i++)
			if (w->class[i] >= held)
				follow(w, i, false, true, REACH_POSSIBLE);
		walk_on(w, true, REACH_POSSIBLE);
	}
	reach_list(w, g->stale, g->nr_stale, false, REACH_STALE);
	if (interiors)
		reach_list(w, g->stale, g->nr_stale, true, REACH_STALE);
	walk_on(w, interiors, REACH_STALE);
}

int reach_pass_judge(struct reach_pass *p, uint8_t *classes)
{
	size_t nr = p->graph.nr;
	struct walk w = {.graph = &p->graph,
			 .class = calloc(nr + 1, 1),
			 .queue = malloc((nr + 1) * sizeof(*w.queue))};

	while (p->next_first <= nr)
		p->graph.first[p->next_first++] = (uint32_t)p->graph.nr_to;
	if (w.class && w.queue)
		walk_all(p, &w);
	free(w.queue);
	if (!w.class || !w.queue) {
		free(w.class);
		return -ENOMEM;
	}
	for (size_t i = 0; i < nr; i++) {
		uint8_t class = w.class[i] == REACH_STACK ? REACH_HELD : w.class[i];

		if (classes[i] < class)
			classes[i] = class;
	}
	p->classes = w.class;
	return 0;
}

const uint8_t *reach_pass_classes(const struct reach_pass *p)
{
	return p->classes;
}

struct reach_graph *reach_pass_graph(struct reach_pass *p)
{
	return &p->graph;
}

bool reach_pass_starts_only(const struct reach_pass *p)
{
	return p->world->starts_only;
}

void reach_pass_lost_with(const struct reach_pass *p, const uint8_t *classes, bool *pointed)
{
	const struct reach_graph *g = &p->graph;

	for (uint32_t from = 0; from < g->nr; from++) {
		if (classes[from] != REACH_LOST)
			continue;
		for (size_t i = g->first[from]; i < g->first[from + 1]; i++)
			if (classes[g->to[i] & ~REACH_INTERIOR] == REACH_LOST &&
			    !(g->to[i] & REACH_INTERIOR && p->world->starts_only))
				pointed[g->to[i] & ~REACH_INTERIOR] = true;
	}
}

void reach_pass_free(struct reach_pass *p)
{
	if (!p)
		return;
	free(p->unused);
	free(p->graph.first);
	free(p->graph.to);
	free(p->graph.roots);
	free(p->graph.stale);
	free(p->classes);
	free(p);
}
