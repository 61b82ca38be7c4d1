/* dominators.h - through which node alone all ways to another one go
 *
 * By the algorithm Semi-NCA (Georgiadis, Linear-Time Algorithms for Dominators, 2005): that of
 * Lengauer and Tarjan without buckets.  Nothing is recursive, and memory is some words for each
 * node and one for each edge.
 */
#ifndef REPORT_DOMINATORS_H
#define REPORT_DOMINATORS_H

#include <stdint.h>

#define DOMINATORS_NONE UINT32_MAX

/* A graph: of node i the edges lead to to[first[i]] up to to[first[i + 1] - 1].  All is borrowed.
 */
struct dom_graph {
	uint32_t nr;	       /* nodes, fewer than DOMINATORS_NONE */
	const uint32_t *first; /* nr + 1 */
	const uint32_t *to;
};

/* What was found.  All zero: nothing. */
struct dominators {
	uint32_t *idom;	   /* by node: the last one before it on all ways; DOMINATORS_NONE of the
			      root, and of what it does not reach */
	uint32_t *order;   /* what is reached, the root first: each node behind its idom */
	uint32_t nr_order; /* how many that are */
};

/* Find them for all ways from @root.  @d is to be released in any case.  Returns 0 or -ENOMEM. */
int dominators_find(struct dominators *d, const struct dom_graph *graph, uint32_t root);

/* Forget them. */
void dominators_release(struct dominators *d);

#endif
