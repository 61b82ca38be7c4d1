/* diff.h - what is outstanding in one trace and not in another, stack by stack
 *
 * Stacks are the same if module (without its directory), function, source file and line of all
 * their frames are: so builds of a program at different places can be compared.  Of those that are
 * left over then, two are the same if module and function are, the first with the first and so on:
 * so can builds from changed sources.
 */
#ifndef REPORT_DIFF_H
#define REPORT_DIFF_H

#include "report/context/report_data.h"

struct diff; /* opaque */

enum diff_side { DIFF_BEFORE, DIFF_AFTER, DIFF_SIDES };

/* A stack of either trace, or of both. */
struct diff_row {
	struct live_amount amount[DIFF_SIDES]; /* outstanding */
	uint32_t key;			       /* of diff.c */
	enum diff_side side;		       /* where there is such a stack, */
	size_t i;			       /* and which of its view */
};

/* Compare what is outstanding in @before and @after, both with places, and all stacks in their
 * views.  Stacks are left out of which neither has as much as the views' options ask for: one that
 * has grown to it is no new one.  @before and @after are borrowed until diff_free().  *@out is NULL
 * on failure.  Returns 0 or -ENOMEM. */
int diff_new(struct diff **out, const struct report_data *before, const struct report_data *after);

/* Stacks, and the one with the @i-th largest change of bytes (from 0); valid until diff_free(). */
size_t diff_nr(const struct diff *diff);
const struct diff_row *diff_get(const struct diff *diff, size_t i);

/* The trace of that side. */
const struct report_data *diff_side(const struct diff *diff, enum diff_side side);

/* "new", "grown", "shrunk", "gone" or "same". */
const char *diff_verdict(const struct diff_row *row);

/* What is outstanding on that side of all these stacks. */
struct live_amount diff_sum(const struct diff *diff, enum diff_side side);

/* By how much those stacks grew that grew or are new, the others aside. */
struct live_amount diff_came(const struct diff *diff);

/* How far @a and @b are apart. */
uint64_t diff_distance(uint64_t a, uint64_t b);

/* Release @diff; NULL is allowed. */
void diff_free(struct diff *diff);

#endif
