/* leaders.c - see leaders.h */
#include "report/reach/graph/leaders.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/array.h"

/* What is known of a block. */
enum mark {
	OTHER,	 /* it is of another class */
	UNKNOWN, /* nothing points to it, as far as was seen */
	POINTED,
	MET, /* by the search for the order of cycles */
	LED, /* a leader reaches it */
};

struct walk {
	const struct reach_graph *graph;
	uint8_t *marks;
	uint32_t *stack; /* of blocks */
	uint32_t *next;	 /* by block: edge to follow */
	uint32_t *order; /* blocks of cycles, each behind what it reaches */
	size_t nr_order;
};

static void mark_pointed(struct walk *w)
{
	const struct reach_graph *g = w->graph;

	for (uint32_t i = 0; i < g->nr; i++)
		for (uint32_t e = g->first[i]; w->marks[i] && e < g->first[i + 1]; e++)
			if (w->marks[g->to[e]] == UNKNOWN)
				w->marks[g->to[e]] = POINTED;
}

/* @leader leads all that it reaches and that nobody leads yet. */
static int lead(struct leaders *l, struct walk *w, uint32_t leader)
{
	const struct reach_graph *g = w->graph;
	size_t nr = 1;

	w->stack[0] = leader;
	w->marks[leader] = LED;
	while (nr) {
		uint32_t at = w->stack[--nr];

		for (uint32_t e = g->first[at]; e < g->first[at + 1]; e++) {
			if (w->marks[g->to[e]] == LED || w->marks[g->to[e]] == OTHER)
				continue;
			w->marks[g->to[e]] = LED;
			w->stack[nr++] = g->to[e];
		}
	}
	return array_append(&l->all, &l->nr, &l->room, &leader, sizeof(leader));
}

/* Search in depth from @from; a block is put into the order when all behind it were. */
static void order_from(struct walk *w, uint32_t from)
{
	const struct reach_graph *g = w->graph;
	size_t nr = 0;

	w->stack[nr++] = from;
	w->marks[from] = MET;
	w->next[from] = g->first[from];
	while (nr) {
		uint32_t at = w->stack[nr - 1], to;

		if (w->next[at] == g->first[at + 1]) {
			w->order[w->nr_order++] = at;
			nr--;
			continue;
		}
		to = g->to[w->next[at]++];
		if (w->marks[to] != POINTED)
			continue;
		w->marks[to] = MET;
		w->next[to] = g->first[to];
		w->stack[nr++] = to;
	}
}

/* What is left is cycles, and what they reach.  The last one of the order is in a cycle that no
 * other one leads to. */
static int lead_cycles(struct leaders *l, struct walk *w, size_t left)
{
	int err = 0;

	w->next = malloc((w->graph->nr + 1) * sizeof(*w->next));
	w->order = malloc((left + 1) * sizeof(*w->order));
	if (!w->next || !w->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->graph->nr; i++)
		if (w->marks[i] == POINTED)
			order_from(w, i);
	for (size_t i = w->nr_order; i-- > 0 && !err;)
		if (w->marks[w->order[i]] == MET)
			err = lead(l, w, w->order[i]);
	return err;
}

static size_t mark_class(struct walk *w, const uint8_t *classes, uint8_t class)
{
	size_t nr = 0;

	for (size_t i = 0; i < w->graph->nr; i++) {
		w->marks[i] = classes[i] == class ? UNKNOWN : OTHER;
		nr += classes[i] == class;
	}
	return nr;
}

int leaders_find(struct leaders *l, const struct reach_graph *graph, const uint8_t *classes,
		 uint8_t class)
{
	struct walk w = {.graph = graph, .marks = malloc(graph->nr + 1)};
	size_t nr = w.marks ? mark_class(&w, classes, class) : 0, left = 0;
	int err = w.marks ? 0 : -ENOMEM;

	if (nr) {
		w.stack = malloc((nr + 1) * sizeof(*w.stack));
		err = w.stack ? 0 : -ENOMEM;
		mark_pointed(&w);
	}
	for (uint32_t i = 0; nr && i < graph->nr && !err; i++)
		if (w.marks[i] == UNKNOWN)
			err = lead(l, &w, i);
	for (uint32_t i = 0; nr && i < graph->nr; i++)
		left += w.marks[i] == POINTED;
	if (!err && left)
		err = lead_cycles(l, &w, left);
	free(w.marks);
	free(w.stack);
	free(w.next);
	free(w.order);
	return err;
}
