/* dominators.c - see dominators.h: nodes have numbers here, in the order of a search in depth */
#include "report/reach/graph/dominators.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/prefetch.h"

/* A node on the way up to the root, which is shortened where it was gone. */
struct link {
	uint32_t ancestor;
	uint32_t least; /* semidominator on the way to the ancestor */
};

/* A node of the graph.  All that is asked of it for an edge to it is in one place. */
struct node {
	uint32_t number; /* DOMINATORS_NONE: not reached */
	uint32_t edge;	 /* where its predecessors are */
	uint32_t least;	 /* of the predecessors that have a lower number */
};

/* A node that the search has entered and not left: its edges that are still to be followed. */
struct visit {
	uint32_t edge, end;
};

/* The search, and what it finds; all but nodes by these numbers. */
struct search {
	const struct dom_graph *graph;
	struct node *nodes;
	uint64_t *entered; /* a bit of each node: all of them stay near */
	uint32_t *order;   /* numbers to nodes */
	uint32_t *parent;  /* in the tree of the search */
	struct link *links;
	uint32_t *semi;		     /* semidominators */
	uint32_t *pred_first, *pred; /* predecessors that have a higher number */
	uint32_t *stack;	     /* of find_least() */
	uint32_t nr;
};

/* How many edges or nodes before its use a thing is brought near, and what it leads to. */
#define AHEAD	   32
#define AHEAD_NEXT 16

static uint32_t *new_words(size_t nr)
{
	return malloc((nr + 1) * sizeof(uint32_t));
}

static int make_search(struct search *s, const struct dom_graph *graph)
{
	size_t nr = graph->nr;

	*s = (struct search){.graph = graph,
			     .nodes = malloc((nr + 1) * sizeof(*s->nodes)),
			     .entered = calloc(nr / 64 + 1, sizeof(*s->entered)),
			     .order = new_words(nr),
			     .parent = new_words(nr)};
	if (!s->nodes || !s->entered || !s->order || !s->parent)
		return -ENOMEM;
	for (size_t i = 0; i <= nr; i++)
		s->nodes[i] = (struct node){.number = DOMINATORS_NONE};
	return 0;
}

static bool is_entered(const struct search *s, uint32_t node)
{
	return s->entered[node / 64] >> node % 64 & 1;
}

/* Bring near what @v, which is on the stack, leads to. */
static void expect_visit(const struct search *s, const struct visit *v)
{
	uint32_t end = v->end - v->edge > AHEAD ? v->edge + AHEAD : v->end;

	for (uint32_t e = v->edge; e < end; e++)
		if (!is_entered(s, s->graph->to[e]))
			prefetch(&s->graph->first[s->graph->to[e]]);
}

static struct visit enter_node(struct search *s, uint32_t node, uint32_t parent)
{
	struct visit v = {s->graph->first[node], s->graph->first[node + 1]};

	s->entered[node / 64] |= UINT64_C(1) << node % 64;
	s->nodes[node].number = s->nr;
	s->order[s->nr] = node;
	s->parent[s->nr++] = parent;
	expect_visit(s, &v);
	return v;
}

static int search_in_depth(struct search *s, uint32_t root)
{
	const uint32_t *to = s->graph->to;
	struct visit *stack = malloc(((size_t)s->graph->nr + 1) * sizeof(*stack));
	uint32_t at = 0;
	size_t nr = 1;

	if (!stack)
		return -ENOMEM;
	stack[0] = enter_node(s, root, 0);
	while (nr) {
		struct visit *v = &stack[nr - 1];

		if (v->edge < v->end) {
			uint32_t next = to[v->edge++];

			if (is_entered(s, next))
				continue;
			stack[nr++] = enter_node(s, next, at);
			at = s->nr - 1;
			continue;
		}
		at = s->parent[at];
		nr--;
		if (nr > AHEAD_NEXT)
			prefetch(&to[stack[nr - AHEAD_NEXT].edge]);
		if (nr > AHEAD_NEXT / 2)
			expect_visit(s, &stack[nr - AHEAD_NEXT / 2]);
	}
	free(stack);
	return 0;
}

/* Of each node, the least predecessor before it, and how many there are behind it. */
static void count_edges(struct search *s)
{
	const struct dom_graph *g = s->graph;
	uint32_t end = g->first[g->nr];

	for (uint32_t i = 0; i <= g->nr; i++) {
		s->nodes[i].edge = 0;
		s->nodes[i].least = s->nodes[i].number;
	}
	for (uint32_t i = 0; i < g->nr; i++) {
		uint32_t number = s->nodes[i].number;

		for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++) {
			struct node *to = &s->nodes[g->to[e]];

			if (e + AHEAD < end)
				prefetch(&s->nodes[g->to[e + AHEAD]]);
			if (number == DOMINATORS_NONE)
				continue;
			if (number > to->number)
				to->edge++;
			else if (number < to->least)
				to->least = number;
		}
	}
}

/* Give each node the place where its predecessors will end. */
static int place_edges(struct search *s)
{
	uint32_t sum = 0;

	s->semi = new_words(s->nr);
	s->pred_first = new_words((size_t)s->nr + 1);
	if (!s->semi || !s->pred_first)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nr; i++) {
		struct node *node = &s->nodes[s->order[i]];

		if (i + AHEAD < s->nr)
			prefetch(&s->nodes[s->order[i + AHEAD]]);
		s->semi[i] = node->least;
		s->pred_first[i] = sum;
		sum += node->edge;
		node->edge = sum;
	}
	s->pred_first[s->nr] = sum;
	s->pred = new_words(sum);
	return s->pred ? 0 : -ENOMEM;
}

/* The edges to lower numbers, the other way round. */
static int turn_edges(struct search *s)
{
	const struct dom_graph *g = s->graph;
	uint32_t end = g->first[g->nr];
	int err;

	count_edges(s);
	err = place_edges(s);
	if (err)
		return err;
	for (uint32_t i = 0; i < g->nr; i++) {
		uint32_t number = s->nodes[i].number;

		for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++) {
			struct node *to = &s->nodes[g->to[e]];

			if (e + AHEAD < end)
				prefetch(&s->nodes[g->to[e + AHEAD]]);
			if (e + AHEAD_NEXT < end)
				prefetch(&s->pred[s->nodes[g->to[e + AHEAD_NEXT]].edge]);
			if (number != DOMINATORS_NONE && number > to->number)
				s->pred[--to->edge] = number;
		}
	}
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
	s->stack = new_words(s->nr);
	if (!s->links || !s->stack)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nr; i++)
		s->links[i] = (struct link){s->parent[i], i};
	for (uint32_t i = s->nr; i-- > 1;) {
		uint32_t least = s->semi[i];

		/* those of the nodes to come are before these */
		for (uint32_t e = s->pred_first[i]; e < s->pred_first[i + 1]; e++) {
			uint32_t semi;

			if (e >= AHEAD)
				prefetch(&s->links[s->pred[e - AHEAD]]);
			if (e >= AHEAD_NEXT)
				prefetch(&s->links[s->links[s->pred[e - AHEAD_NEXT]].ancestor]);
			semi = find_least(s, s->pred[e], i + 1);
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
		d->idom[s->order[i]] = s->order[idom[i]];
	}
	d->order = s->order;
	d->nr_order = s->nr;
	s->order = NULL;
	return 0;
}

int dominators_find(struct dominators *d, const struct dom_graph *graph, uint32_t root)
{
	struct search s;
	int err = make_search(&s, graph);

	*d = (struct dominators){0};
	if (!err)
		err = search_in_depth(&s, root);
	if (!err)
		err = turn_edges(&s);
	free(s.entered);
	free(s.nodes);
	if (!err)
		err = find_semi(&s);
	free(s.pred);
	free(s.pred_first);
	free(s.links);
	free(s.stack);
	if (!err)
		err = find_idom(d, &s);
	free(s.semi);
	free(s.order);
	free(s.parent);
	return err;
}

void dominators_release(struct dominators *d)
{
	free(d->idom);
	free(d->order);
	*d = (struct dominators){0};
}
