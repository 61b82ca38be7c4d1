/* holders.c - see holders.h */
#include "report/reach/graph/holders.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/prefetch.h"
#include "report/reach/graph/dominators.h"
#include "report/reach/graph/leaders.h"

#define AHEAD 64 /* words before its use a block's class is brought near */

/* What is made while they are found. */
struct finder {
	const struct holders_input *in;
	struct holders *h;
	struct reach_graph *graph;
	struct leaders lost, moved;
	int ways_err; /* of find_ways() */
};

static int classify(struct finder *f)
{
	static const uint8_t class_of[REACH_CLASSES] = {
		[REACH_STALE] = HOLDER_OF_STALE,
		[REACH_POSSIBLE] = HOLDER_OF_POSSIBLE,
		[REACH_STACK] = HOLDER_OF_STACK,
		[REACH_HELD] = HOLDER_OF_HELD,
	};
	const uint8_t *seen = reach_pass_classes(f->in->pass);
	uint8_t *classes = f->h->classes = malloc((size_t)f->h->nr_blocks + 1);

	if (!classes)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->h->nr_blocks; i++)
		classes[i] = seen[i]	       ? class_of[seen[i]]
			     : f->in->final[i] ? HOLDER_OF_MOVED
					       : HOLDER_OF_LOST;
	return 0;
}

/* Does a word to @to, from where the class is @from, make that block what it is? */
static bool counts(const struct finder *f, uint8_t from, uint32_t to)
{
	bool interior = to & REACH_INTERIOR;

	if (interior && f->in->starts_only)
		return false;
	if (interior && from > HOLDER_OF_POSSIBLE)
		from = HOLDER_OF_POSSIBLE;
	return f->h->classes[to & ~REACH_INTERIOR] == from;
}

/* Leave in the graph the words of blocks that count. */
static void drop_edges(struct finder *f)
{
	struct reach_graph *g = f->graph;
	uint32_t at = 0, kept = 0;

	for (uint32_t from = 0; from < g->nr; from++) {
		uint32_t end = g->first[from + 1];

		g->first[from] = kept;
		for (; at < end; at++) {
			if (at + AHEAD < g->nr_to)
				prefetch(&f->h->classes[g->to[at + AHEAD] & ~REACH_INTERIOR]);
			if (counts(f, f->h->classes[from], g->to[at]))
				g->to[kept++] = g->to[at] & ~REACH_INTERIOR;
		}
	}
	g->first[g->nr] = kept;
	g->nr_to = kept;
}

static uint8_t class_of_root(const struct finder *f, uint32_t root, bool stale)
{
	if (stale)
		return HOLDER_OF_STALE;
	return f->in->roots->is_stack(f->in->roots->arg, root) ? HOLDER_OF_STACK : HOLDER_OF_HELD;
}

/* Likewise of roots.  Returns how many words are left. */
static size_t drop_words(struct finder *f, struct reach_word *words, size_t nr, bool stale)
{
	size_t kept = 0;

	for (size_t i = 0; i < nr; i++)
		if (counts(f, class_of_root(f, words[i].root, stale), words[i].to))
			words[kept++] =
				(struct reach_word){words[i].to & ~REACH_INTERIOR, words[i].root};
	return kept;
}

static void count_edges(uint32_t *first, const struct reach_word *words, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		first[words[i].root]++;
}

/* Sorted by root: first[root] is where those of it end, and moves down to where they begin. */
static void put_edges(uint32_t *first, uint32_t *to, const struct reach_word *words, size_t nr)
{
	for (size_t i = nr; i-- > 0;)
		to[--first[words[i].root]] = words[i].to;
}

static void put_leaders(uint32_t *first, uint32_t *to, const struct leaders *leaders)
{
	for (size_t i = leaders->nr; i-- > 0;)
		to[--*first] = leaders->all[i];
}

/* Make room for the roots' edges, and for one to each root. */
static int grow_graph(struct finder *f)
{
	struct reach_graph *g = f->graph;
	size_t nodes = (size_t)f->h->nr_blocks + f->h->nr_roots + 1;
	size_t edges =
		g->nr_to + g->nr_roots + g->nr_stale + f->lost.nr + f->moved.nr + f->h->nr_roots;
	uint32_t *to, *first;

	if (nodes >= HOLDERS_NONE || edges >= UINT32_MAX)
		return -ENOMEM;
	to = realloc(g->to, (edges + 1) * sizeof(*to));
	if (!to)
		return -ENOMEM;
	g->to = to;
	first = realloc(g->first, (nodes + 1) * sizeof(*first));
	if (!first)
		return -ENOMEM;
	g->first = first;
	memset(first + g->nr + 1, 0, (nodes - g->nr) * sizeof(*first));
	return 0;
}

/* The roots become nodes behind the blocks; and all hang on one more. */
static int add_roots(struct finder *f)
{
	struct reach_graph *g = f->graph;
	uint32_t *first, nr = f->h->nr_roots, sum;
	int err = grow_graph(f);

	if (err)
		return err;
	first = g->first + g->nr;
	sum = first[0];
	first[0] = 0;
	count_edges(first, g->roots, g->nr_roots);
	count_edges(first, g->stale, g->nr_stale);
	first[nr - 2] += (uint32_t)f->lost.nr;
	first[nr - 1] += (uint32_t)f->moved.nr;
	for (uint32_t i = 0; i < nr; i++) {
		sum += first[i];
		first[i] = sum;
	}
	put_edges(first, g->to, g->stale, g->nr_stale);
	put_edges(first, g->to, g->roots, g->nr_roots);
	put_leaders(&first[nr - 2], g->to, &f->lost);
	put_leaders(&first[nr - 1], g->to, &f->moved);
	first[nr] = sum;
	for (uint32_t i = 0; i < nr; i++)
		if (first[i + 1] > first[i])
			g->to[sum++] = g->nr + i;
	first[nr + 1] = sum;
	g->nr_to = sum;
	free(g->roots);
	free(g->stale);
	g->roots = g->stale = NULL;
	g->nr_roots = g->nr_stale = g->room_roots = g->room_stale = 0;
	return 0;
}

static void visit_edges(struct holders *h, const struct reach_graph *g, uint32_t from)
{
	for (uint32_t e = g->first[from]; e < g->first[from + 1]; e++) {
		uint32_t to = g->to[e];

		if (h->parent[to] != HOLDERS_NONE)
			continue;
		h->parent[to] = from;
		h->order[h->nr_order++] = to;
	}
}

/* The shortest ways from any root. */
static int find_ways(struct finder *f)
{
	struct holders *h = f->h;
	size_t nr = (size_t)h->nr_blocks + 1;

	h->parent = malloc(nr * sizeof(*h->parent));
	h->order = malloc(nr * sizeof(*h->order));
	if (!h->parent || !h->order)
		return -ENOMEM;
	memset(h->parent, 0xff, nr * sizeof(*h->parent));
	for (uint32_t i = 0; i < h->nr_roots; i++)
		visit_edges(h, f->graph, holders_root(h, i));
	for (uint32_t i = 0; i < h->nr_order; i++) {
		reach_graph_expect(f->graph, h->order, i, h->nr_order, h->parent,
				   sizeof(*h->parent));
		visit_edges(h, f->graph, h->order[i]);
	}
	return 0;
}

static struct live_amount size_of_node(const struct finder *f, uint32_t node)
{
	const struct reach_block *b = &f->in->blocks[node];

	if (node >= f->h->nr_blocks)
		return (struct live_amount){0, 0};
	return f->in->amounts ? f->in->amounts[node] : (struct live_amount){1, b->end - b->start};
}

static int find_retained(struct finder *f)
{
	struct holders *h = f->h;
	uint32_t nr = holders_all(h) + 1;
	const struct dom_graph graph = {nr, f->graph->first, f->graph->to};
	struct dominators d;
	int err = dominators_find(&d, &graph, holders_all(h));

	if (!err) {
		h->retained = malloc((size_t)nr * sizeof(*h->retained));
		err = h->retained ? 0 : -ENOMEM;
	}
	if (!err) {
		h->idom = d.idom;
		d.idom = NULL;
		for (uint32_t i = 0; i < nr; i++)
			h->retained[i] = size_of_node(f, i);
		for (uint32_t i = d.nr_order; i-- > 1;)
			live_amount_add(&h->retained[h->idom[d.order[i]]], h->retained[d.order[i]]);
	}
	dominators_release(&d);
	return err;
}

static void *find_ways_beside(void *arg)
{
	struct finder *f = arg;

	f->ways_err = find_ways(f);
	return NULL;
}

/* The ways by a thread of their own, as both take long and only read the graph. */
static int find_ways_and_retained(struct finder *f)
{
	pthread_t thread;
	int err = -pthread_create(&thread, NULL, find_ways_beside, f);

	if (err)
		return err;
	err = find_retained(f);
	pthread_join(thread, NULL);
	free(f->graph->to);
	f->graph->to = NULL;
	return err ? err : f->ways_err;
}

int holders_find(struct holders *h, const struct holders_input *input)
{
	struct finder f = {.in = input, .h = h, .graph = reach_pass_graph(input->pass)};
	struct reach_graph *g = f.graph;
	int err;

	*h = (struct holders){.nr_blocks = (uint32_t)g->nr, .nr_roots = input->nr_roots + 2};
	err = classify(&f);
	if (!err) {
		drop_edges(&f);
		g->nr_roots = drop_words(&f, g->roots, g->nr_roots, false);
		g->nr_stale = drop_words(&f, g->stale, g->nr_stale, true);
		err = leaders_find(&f.lost, g, h->classes, HOLDER_OF_LOST);
	}
	if (!err)
		err = leaders_find(&f.moved, g, h->classes, HOLDER_OF_MOVED);
	if (!err)
		err = add_roots(&f);
	if (!err)
		err = find_ways_and_retained(&f);
	free(f.lost.all);
	free(f.moved.all);
	return err;
}

void holders_release(struct holders *h)
{
	free(h->classes);
	free(h->parent);
	free(h->order);
	free(h->idom);
	free(h->retained);
	*h = (struct holders){0};
}
