/* given_back.h - memory that madvise gave back: which of it is used again tells no call, so the
 * recorder looks */
#ifndef RECORD_GIVEN_BACK_H
#define RECORD_GIVEN_BACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/trace.h"
#include "record/target/target.h"

/* Addresses [start, end), multiples of a page. */
struct given_range {
	uint64_t start, end;
};

/* What a process has given back, and not used again as far as is known; all zero: nothing. */
struct given_back {
	struct given_range *v; /* ascending, apart from each other */
	size_t nr, room;
	uint64_t at;	   /* where the next look begins */
	uint64_t left_out; /* ranges that are not followed: there are too many */
};

/* Take in @event of the process.  What cannot be followed is counted. */
void given_back_note(struct given_back *g, const struct mlk_event *event);

/* Look at no more than @pages pages of @t, which takes 4 to 40 ns for each; the next look goes on
 * behind them.  @found is called with @arg for each range that is used again, and is forgotten.
 * Returns whether all was looked at. */
bool given_back_look(struct given_back *g, const struct target *t, uint64_t pages,
		     void (*found)(void *arg, uint64_t addr, uint64_t size), void *arg);

/* Nothing is given back any more. */
void given_back_release(struct given_back *g);

#endif
