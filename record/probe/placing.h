/* placing.h - links on their way in, side by side
 *
 * For each place the kernel waits until no process of the machine is in the middle of a fork, and
 * keeps new forks waiting meanwhile.  On a loaded machine a fork may stop for tenths of a second;
 * but threads that wait at the same time wait for the same forks.
 */
#ifndef RECORD_PLACING_H
#define RECORD_PLACING_H

#include "record/probe/links.h"

/* All zero: there is nothing to be placed. */
struct placing {
	struct placing_job *v;
	size_t nr, room;
};

/* Note that the one probe of @l is to be attached for @set, which stays where it is until
 * placing_run(); what @l points to is copied.  Returns 0 or -ENOMEM. */
int placing_add(struct placing *p, struct link_set *set, const struct helper_link *l);

/* Put all of them in, in any order, and add their links to their sets.  Nothing is left in @p.
 * Returns 0 or the first error, -errno; the others may be in. */
int placing_run(struct placing *p);

#endif
