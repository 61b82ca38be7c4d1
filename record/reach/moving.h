/* moving.h - how many passes it takes until a pointer that moves is missed by none but a few
 *
 * The recorder does not know which words hold blocks.  But it sees, in a sample, how many differ
 * from what they were in the pass before.  A pass misses a word that moves while it goes on with a
 * chance of a sixth: where it was must be read later, where it comes to earlier.
 */
#ifndef RECORD_REACH_MOVING_H
#define RECORD_REACH_MOVING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/reach.h"

#define MOVING_WORDS  65536u
#define MOVING_PASSES 32 /* of more the first ones count */

/* All zero is the beginning. */
struct moving {
	struct mlk_pointer *before, *now; /* samples of two passes, ascending */
	size_t nr_before, nr_now;
	unsigned int shift; /* of 1 << shift words one is in them */
	bool compared;	    /* there was a pass before */
	bool failed;	    /* there was no memory for them */
	uint64_t begin_ns;  /* of the walk before */
	double rate;	    /* how often a word moves a nanosecond, the most so far */
	double took_ns[MOVING_PASSES];
};

/* The next words of a pass. */
void moving_take(struct moving *m, const struct mlk_pointer *words, size_t nr);

/* It walked from @begin_ns to @end_ns, and is the @passes-th.  Returns whether all passes together
 * may have missed something in @words words. */
bool moving_end_pass(struct moving *m, uint64_t begin_ns, uint64_t end_ns, uint64_t words,
		     unsigned int passes);

/* What share of the words a pass misses that walks for @took_ns. */
double moving_missed(const struct moving *m, double took_ns);

/* Forget it. */
void moving_release(struct moving *m);

#endif
