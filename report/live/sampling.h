/* sampling.h - how much a block of a sampled trace represents
 *
 * A block that was recorded with the probability p represents 1 / p blocks like it: sums of these
 * have the true sum as their mean (Horvitz and Thompson).
 */
#ifndef REPORT_SAMPLING_H
#define REPORT_SAMPLING_H

#include <stdbool.h>

#include "format/trace.h"
#include "report/live/block_map.h"
#include "report/live/live.h"

/* How allocations were chosen; all zero: all were recorded. */
struct sampling {
	uint64_t every; /* one of so many was; 0 or 1: not so */
	uint64_t bytes; /* mean bytes from one to the next; 0: not so.  It goes before every. */
};

/* What @meta says. */
struct sampling sampling_of(const struct mlk_meta *meta);

/* Is anything estimated? */
bool sampling_is_on(const struct sampling *s);

/* How many blocks one of @size requested bytes represents: at least 1. */
double sampling_weight(const struct sampling *s, uint64_t size);

/*
 * Say in @block how much it represents: it was allocated by @event.  Blocks are whole numbers: of
 * 1.3, seven in ten blocks stand for one and three for two, as their allocation ids decide.
 */
void sampling_weigh(const struct sampling *s, const struct mlk_event *event,
		    struct live_block *block);

/* What @block, or the piece that it is of a mapping, represents.  Bytes of pieces add up to those
 * of the whole. */
struct live_amount sampling_amount(const struct live_block *block);

/* Sums of squares: how far estimates may be from the truth.  All zero: a sum of nothing. */
struct sampling_error {
	double blocks, bytes; /* variances */
};

/* Add what @block contributes to the variance of a sum that it is in. */
void sampling_error_add(struct sampling_error *error, const struct live_block *block);

#endif
