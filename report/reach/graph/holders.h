/* holders.h - who holds each block of a process, and how much only it does
 *
 * The graph has the blocks as nodes, behind them the roots, and then one that all roots hang on.
 * An edge counts only if it makes a block as well held as it is: a stale word takes nothing from
 * the variable that holds the same block, nor does a word into its middle, nor one on a stack.
 */
#ifndef REPORT_HOLDERS_H
#define REPORT_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/live/live.h"
#include "report/reach/graph/reach_pass.h"

#define HOLDERS_NONE UINT32_MAX

/* How a block is held in one pass, ascending. */
enum holder_class {
	HOLDER_OF_LOST,	 /* it is lost */
	HOLDER_OF_MOVED, /* by what another pass saw, and not this one */
	HOLDER_OF_STALE,
	HOLDER_OF_POSSIBLE,
	HOLDER_OF_STACK, /* it is held by stacks and registers alone: that will pass */
	HOLDER_OF_HELD,
};

/* What was found.  All zero: nothing. */
struct holders {
	uint32_t nr_blocks; /* nodes below it are blocks */
	uint32_t nr_roots;  /* the last two are not in the pass: what lost blocks hang on, and moved
			       ones */
	uint8_t *classes;   /* of each block, enum holder_class */
	uint32_t
		*parent; /* of each block: the node before it on a shortest way; HOLDERS_NONE: no */
	uint32_t *order; /* all blocks, each behind its parent */
	uint32_t nr_order;
	uint32_t *idom;		      /* of each node: the last one on all ways to it */
	struct live_amount *retained; /* of each node: itself, and what it alone holds */
};

/* What it is made of; all is borrowed, but holders_find() changes the graph of the pass. */
struct holders_input {
	struct reach_pass *pass; /* after reach_pass_judge() */
	const uint8_t *final;	 /* what all passes say of each block, enum reach_class */
	bool starts_only;
	uint32_t nr_roots; /* numbers of roots in the graph are below it */
	const struct reach_block *blocks;
	const struct live_amount *amounts; /* NULL: they are their sizes */
	const struct reach_roots *roots;   /* those of the pass */
};

/* Find them.  @h is to be released in any case.  Returns 0, -ENOMEM or -EAGAIN:
 * there can be no more threads. */
int holders_find(struct holders *h, const struct holders_input *input);

/* The node of the root @number of the pass. */
static inline uint32_t holders_root(const struct holders *h, uint32_t number)
{
	return h->nr_blocks + number;
}

/* What lost blocks hang on, by their leaders. */
static inline uint32_t holders_lost(const struct holders *h)
{
	return h->nr_blocks + h->nr_roots - 2;
}

/* What those hang on, by their leaders, that only another pass reached. */
static inline uint32_t holders_moved(const struct holders *h)
{
	return h->nr_blocks + h->nr_roots - 1;
}

/* What all roots hang on. */
static inline uint32_t holders_all(const struct holders *h)
{
	return h->nr_blocks + h->nr_roots;
}

/* Forget them. */
void holders_release(struct holders *h);

#endif
