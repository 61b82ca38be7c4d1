/* dominators.c - see dominators.h: nodes have numbers here, in the order of a search in depth */
#include "report/reach/dominators.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A node on the way up to the root, which is shortened where it was gone. */
struct link {
	uint32_t ancestor;
	uint32_t least; /* semidominator on the way to the ancestor */
};

/* The search, and what it finds; all but number by these numbers. */
struct search {
	const struct dom_graph *graph;
	uint32_t *number; /* by node; DOMINATORS_NONE: not reached */
	uint32_t *node;	  /* the order */
	uint32_t *parent; /* in the tree of the search */
	uint32_t *stack;  /* by node: the next edge; later of find_least() */
	struct link *links;
	uint32_t *semi; /* semidominators */
	uint32_t *pred_first, *pred;
	uint32_t nr;
};

#define AHEAD 24 /* edges of which what they lead to is brought near before it is used */

static uint32_t *new_words(size_t nr)
{
	return malloc((nr + 1) * sizeof(uint32_t));
}

static int make_search(struct search *s, const struct dom_graph *graph)
{
	size_t nr = graph->nr;

	*s = (struct search){.graph = graph,
			     .number = new_words(nr),
			     .node = new_words(nr),
			     .parent = new_words(nr),
			     .stack = new_words(nr)};
	if (!s->number || !s->node || !s->parent || !s->stack)
		return -ENOMEM;
	memset(s->number, 0xff, nr * sizeof(*s->number));
	return 0;
}

static void enter_node(struct search *s, uint32_t node, uint32_t parent)
{
	s->number[node] = s->nr;
	s->node[s->nr] = node;
	s->parent[s->nr++] = parent;
	s->stack[node] = s->graph->first[node];
	for (uint32_t e = s->graph->first[node]; e < s->graph->first[node + 1]; e++) {
		__builtin_prefetch(&s->number[s->graph->to[e]]);
		if (e - s->graph->first[node] >= AHEAD)
			break;
	}
}

static void search_in_depth(struct search *s, uint32_t root)
{
	uint32_t at = root;

	enter_node(s, root, 0);
	for (;;) {
		if (s->stack[at] < s->graph->first[at + 1]) {
			uint32_t to = s->graph->to[s->stack[at]++];

			if (s->number[to] == DOMINATORS_NONE) {
				enter_node(s, to, s->number[at]);
				at = to;
			}
		} else if (at == root) {
			return;
		} else {
			at = s->node[s->parent[s->number[at]]];
		}
	}
}

/* Edges lead to numbers from now on.  Counts those to each. */
static uint32_t number_edges(struct search *s)
{
	const struct dom_graph *g = s->graph;
	uint32_t sum = 0;

	for (uint32_t e = 0; e < g->first[g->nr]; e++) {
		if (e + AHEAD < g->first[g->nr])
			__builtin_prefetch(&s->number[g->to[e + AHEAD]]);
		g->to[e] = s->number[g->to[e]];
	}
	for (uint32_t i = 0; i < s->nr; i++) {
		uint32_t end = g->first[s->node[i] + 1];

		for (uint32_t e = g->first[s->node[i]]; e < end; e++)
			__builtin_prefetch(&s->pred_first[g->to[e] + 1], 1);
		for (uint32_t e = g->first[s->node[i]]; e < end; e++)
			s->pred_first[g->to[e] + 1]++;
	}
	for (uint32_t i = 0; i <= s->nr; i++) {
		sum += s->pred_first[i];
		s->pred_first[i] = sum;
	}
	return sum;
}

/* The edges the other way round. */
static int turn_edges(struct search *s)
{
	const struct dom_graph *g = s->graph;
	uint32_t sum;

	s->pred_first = calloc((size_t)s->nr + 2, sizeof(*s->pred_first));
	if (!s->pred_first)
		return -ENOMEM;
	sum = number_edges(s);
	s->pred = new_words(sum);
	if (!s->pred)
		return -ENOMEM;
	for (uint32_t i = s->nr; i-- > 0;) {
		uint32_t end = g->first[s->node[i] + 1];

		if (i >= AHEAD)
			__builtin_prefetch(&g->first[s->node[i - AHEAD]]);
		for (uint32_t e = g->first[s->node[i]]; e < end; e++)
			__builtin_prefetch(&s->pred_first[g->to[e] + 1], 1);
		for (uint32_t e = g->first[s->node[i]]; e < end; e++)
			s->pred[--s->pred_first[g->to[e] + 1]] = i;
	}
	/* each has moved down to the beginning of its own: by one place too far up */
	memmove(s->pred_first, s->pred_first + 1, s->nr * sizeof(*s->pred_first));
	s->pred_first[s->nr] = sum;
	return 0;
}

/* The least semidominator on the way from @v up to what is not below @last; the way is shortened.
 */
static uint32_t find_least(struct search *s, uint32_t v, uint32_t last)
{
	struct link *links = s->links;
	uint32_t at = v, above;
	size_t nr = 0;

	while (links[at].ancestor >= last) {
		s->stack[nr++] = at;
		at = links[at].ancestor;
	}
	for (above = at; nr; above = at) {
		at = s->stack[--nr];
		links[at].ancestor = links[above].ancestor;
		if (links[above].least < links[at].least)
			links[at].least = links[above].least;
	}
	return links[v].least;
}

/* From the last node on up: what is behind a node has its semidominator already, and is linked. */
static int find_semi(struct search *s)
{
	s->links = malloc(((size_t)s->nr + 1) * sizeof(*s->links));
	s->semi = new_words(s->nr);
	if (!s->links || !s->semi)
		return -ENOMEM;
	s->semi[0] = 0;
	for (uint32_t i = 0; i < s->nr; i++)
		s->links[i] = (struct link){s->parent[i], i};
	for (uint32_t i = s->nr; i-- > 1;) {
		uint32_t least = s->parent[i];

		for (uint32_t e = s->pred_first[i]; e < s->pred_first[i + 1]; e++) {
			uint32_t p = s->pred[e], semi;

			if (e >= AHEAD) /* those of the nodes to come are before these */
				__builtin_prefetch(&s->links[s->pred[e - AHEAD]], 1);
			semi = p <= i ? p : find_least(s, p, i + 1);
			if (semi < least)
				least = semi;
		}
		s->links[i].least = least;
		s->semi[i] = least;
	}
	return 0;
}

/* The dominator is the nearest one above the parent that is not behind the semidominator. */
static int find_idom(struct dominators *d, struct search *s)
{
	uint32_t *idom = s->parent;

	d->idom = new_words(s->graph->nr);
	if (!d->idom)
		return -ENOMEM;
	memset(d->idom, 0xff, s->graph->nr * sizeof(*d->idom));
	for (uint32_t i = 1; i < s->nr; i++) {
		while (idom[i] > s->semi[i])
			idom[i] = idom[idom[i]];
		d->idom[s->node[i]] = s->node[idom[i]];
	}
	d->order = s->node;
	d->nr_order = s->nr;
	s->node = NULL;
	return 0;
}

int dominators_find(struct dominators *d, const struct dom_graph *graph, uint32_t root)
{
	struct search s;
	int err = make_search(&s, graph);

	*d = (struct dominators){0};
	if (!err) {
		search_in_depth(&s, root);
		err = turn_edges(&s);
	}
	free(s.number);
	if (!err)
		err = find_semi(&s);
	free(s.pred);
	free(s.pred_first);
	free(s.links);
	if (!err)
		err = find_idom(d, &s);
	free(s.semi);
	free(s.node);
	free(s.parent);
	free(s.stack);
	return err;
}

void dominators_release(struct dominators *d)
{
	free(d->idom);
	free(d->order);
	*d = (struct dominators){0};
}
