/* targets.h - where a word may point to: the writable memory of a process, as a table of bits */
#ifndef RECORD_REACH_TARGETS_H
#define RECORD_REACH_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/reach.h"

#define TARGETS_TOP   (UINT64_C(1) << 47) /* user space ends below it */
#define TARGETS_SHIFT 21		  /* a bit for two megabytes */
#define TARGETS_WORDS (TARGETS_TOP >> TARGETS_SHIFT >> 6)

/* Ranges, and a bit for each piece of the address space that one reaches into.  The ranges are
 * borrowed. */
struct targets {
	uint64_t *bits; /* TARGETS_WORDS, of which few have memory */
	const struct mlk_range *ranges;
	size_t nr;
	size_t last; /* the range that held the word before */
};

/* Begin with @ranges, ascending; all writable memory.  Returns 0 or -ENOMEM, and then there is
 * nothing to release. */
int targets_begin(struct targets *t, const struct mlk_range *ranges, size_t nr);

/* The rest of targets_hold(): does a range hold @word, whose bit is set? */
bool targets_find(struct targets *t, uint64_t word);

/* Forget the bits. */
void targets_release(struct targets *t);

/* Does @word point into one of the ranges?  Nearly all words do not, so this is no call. */
static inline bool targets_hold(struct targets *t, uint64_t word)
{
	uint64_t bit = word >> TARGETS_SHIFT;

	return word < TARGETS_TOP && t->bits[bit >> 6] >> (bit & 63) & 1 && targets_find(t, word);
}

#endif
