/* diff.h - what is outstanding in one trace and not in another, stack by stack
 *
 * Stacks are the same if module (without its directory), function, source file and line of all
 * their frames are: so builds of a program at different places can be compared.  Of those that are
 * left over then, two are the same if module and function are, the first with the first and so on:
 * so can builds from changed sources.
 */
#ifndef REPORT_DIFF_H
#define REPORT_DIFF_H

#include "report/base/strings.h"
#include "report/context/report_data.h"

/* The two traces, and how many that is. */
enum diff_side { DIFF_BEFORE, DIFF_AFTER, DIFF_SIDES };

/* A stack of either trace, or of both. */
struct diff_row {
	struct live_amount amount[DIFF_SIDES]; /* outstanding */
	double rate[DIFF_SIDES];	       /* bytes a minute that it grew, 0: it did not */
	uint32_t key;			       /* of diff.c */
	enum diff_side side;		       /* where there is such a stack, */
	size_t i;			       /* and which of its view */
};

/* Two traces; after diff_new() the stacks are sorted, the largest change of bytes first. */
struct diff {
	const struct report_data *side[DIFF_SIDES];
	struct strings *keys;  /* "" is none */
	struct diff_row *rows; /* by number of key, less one; sorted then */
	size_t nr, room;
	bool rates; /* growth is compared, not what is outstanding: rate[] is filled in */
};

/* Where both recordings attached to one process, what is outstanding depends on their lengths.
 * Then, if both sides have their growth, the stacks that grow are ranked by their rates. */

/* Compare what is outstanding in @before and @after, both with places, and all stacks in their
 * views.  Stacks are left out of which neither has as much as the views' options ask for: one that
 * has grown to it is no new one.  @before and @after are borrowed until diff_free().  *@out is NULL
 * on failure.  Returns 0 or -ENOMEM. */
int diff_new(struct diff **out, const struct report_data *before, const struct report_data *after);

/* Are they two recordings that attached to one process, and not two moments of one? */
bool diff_one_process(const struct report_data *before, const struct report_data *after);

/* "new", "grown", "shrunk", "gone" or "same"; of rates "faster" and "slower", and "same" if they
 * differ by less than a tenth. */
const char *diff_verdict(const struct diff *diff, const struct diff_row *row);

/* What is outstanding on that side of all these stacks. */
struct live_amount diff_sum(const struct diff *diff, enum diff_side side);

/* By how much those stacks grew that grew or are new, the others aside.  Of rates: how many bytes
 * more those that are new or grow faster allocated in the later recording than they would have at
 * the rate before. */
struct live_amount diff_came(const struct diff *diff);

/* How far @a and @b are apart. */
uint64_t diff_distance(uint64_t a, uint64_t b);

/* Make labels for the frames of both sides, and *@numbers[]: see place_labels_both().  All are the
 * caller's, also on failure.  Returns 0 or -ENOMEM. */
int diff_labels(const struct diff *diff, struct labels **labels, uint32_t *numbers[DIFF_SIDES],
		bool inlined);

/* Write the labels of @row, outermost first, to @path.  Returns how many. */
size_t diff_path(const struct diff *diff, const struct diff_row *row,
		 uint32_t *const numbers[DIFF_SIDES], uint32_t path[VIEW_MAX_PATH]);

/* Release @diff; NULL is allowed. */
void diff_free(struct diff *diff);

#endif
