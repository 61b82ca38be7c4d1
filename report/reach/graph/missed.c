/* missed.c - see missed.h */
#include "report/reach/graph/missed.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/array.h"

/* Words that are kept at most, 32 megabytes.  Where more is lost, only what passes have reached
 * helps later ones. */
#define MOST_EDGES (1u << 22)

/* Blocks whose words are to be followed. */
struct spread {
	const struct missed *missed;
	const struct reach_graph *graph;
	bool interiors;
	uint8_t *classes;
	bool *queued;
	uint32_t *queue; /* each block is in it once at most, so it is round */
	size_t first, nr;
};

/* Returns 0 or -ENOMEM.  Most often there is nothing to be followed, and no memory is taken. */
static int push(struct spread *s, uint32_t block)
{
	if (!s->queue) {
		s->queued = calloc(s->graph->nr, sizeof(*s->queued));
		s->queue = malloc(s->graph->nr * sizeof(*s->queue));
		if (!s->queued || !s->queue)
			return -ENOMEM;
	}
	if (s->queued[block])
		return 0;
	s->queued[block] = true;
	s->queue[(s->first + s->nr++) % s->graph->nr] = block;
	return 0;
}

/* Block @from has a word to @to, which may have REACH_INTERIOR. */
static int follow(struct spread *s, uint32_t from, uint32_t to)
{
	uint32_t block = to & ~REACH_INTERIOR;
	uint8_t class = s->classes[from];

	if (to & REACH_INTERIOR) {
		if (!s->interiors)
			return 0;
		if (class > REACH_POSSIBLE)
			class = REACH_POSSIBLE;
	}
	if (s->classes[block] >= class)
		return 0;
	s->classes[block] = class;
	return push(s, block);
}

static size_t first_edge(const struct missed *m, uint32_t from)
{
	size_t low = 0, high = m->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->edges[middle] >> 32 < from)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int follow_all(struct spread *s)
{
	const struct reach_graph *g = s->graph;
	const struct missed *m = s->missed;
	int err = 0;

	while (s->nr && !err) {
		uint32_t from = s->queue[s->first];

		s->first = (s->first + 1) % g->nr;
		s->nr--;
		s->queued[from] = false;
		for (size_t i = g->first[from]; i < g->first[from + 1] && !err; i++)
			err = follow(s, from, g->to[i]);
		for (size_t i = first_edge(m, from); i < m->nr && m->edges[i] >> 32 == from && !err;
		     i++)
			err = follow(s, from, (uint32_t)m->edges[i]);
	}
	return err;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Keep of all words those between blocks that still seem lost. */
static int keep(struct missed *m, const struct reach_graph *g, const uint8_t *classes)
{
	size_t kept = 0;
	int err = 0;

	for (uint32_t from = 0; from < g->nr && !err; from++) {
		if (classes[from] != REACH_LOST)
			continue;
		for (size_t i = g->first[from]; i < g->first[from + 1] && !err; i++) {
			const uint64_t edge = (uint64_t)from << 32 | g->to[i];

			if (m->nr < MOST_EDGES && classes[g->to[i] & ~REACH_INTERIOR] == REACH_LOST)
				err = array_append(&m->edges, &m->nr, &m->room, &edge,
						   sizeof(edge));
		}
	}
	if (m->nr)
		qsort(m->edges, m->nr, sizeof(*m->edges), by_number);
	for (size_t i = 0; i < m->nr; i++) {
		const uint64_t edge = m->edges[i];

		if (classes[edge >> 32] == REACH_LOST &&
		    classes[(uint32_t)edge & ~REACH_INTERIOR] == REACH_LOST &&
		    (!kept || m->edges[kept - 1] != edge))
			m->edges[kept++] = edge;
	}
	m->nr = kept;
	return err;
}

/* Have earlier passes reached a block by more than this one, which has followed its words? */
static bool is_behind(uint8_t class, uint8_t own)
{
	return class > (own == REACH_STACK ? REACH_HELD : own);
}

int missed_find(struct missed *m, struct reach_pass *p, uint8_t *classes, bool more)
{
	const struct reach_graph *g = reach_pass_graph(p);
	const uint8_t *own = reach_pass_classes(p);
	struct spread s = {
		.missed = m,
		.graph = g,
		.interiors = !reach_pass_starts_only(p),
		.classes = classes,
	};
	int err = 0;

	for (uint32_t i = 0; i < g->nr && !err; i++)
		if (is_behind(classes[i], own[i]))
			err = push(&s, i);
	for (size_t i = 0; i < m->nr && !err; i++)
		if (classes[m->edges[i] >> 32] != REACH_LOST)
			err = push(&s, (uint32_t)(m->edges[i] >> 32));
	if (!err)
		err = follow_all(&s);
	free(s.queued);
	free(s.queue);
	return !err && more ? keep(m, g, classes) : err;
}

void missed_release(struct missed *m)
{
	free(m->edges);
	*m = (struct missed){0};
}
