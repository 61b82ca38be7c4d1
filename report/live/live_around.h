/* live_around.h - the outstanding blocks at and near an address */
#ifndef REPORT_LIVE_AROUND_H
#define REPORT_LIVE_AROUND_H

#include "report/live/live.h"

/* Of one process.  Which of the blocks are known is said before each. */
struct live_around {
	uint64_t addr;
	bool held, has_before, has_after;
	struct live_block holder; /* the least that holds the address; else the address, empty */
	struct live_block before; /* the last that ends at the holder or the address, or before */
	struct live_block after;  /* the first that begins behind them */
};

/* What is outstanding in process number @process (below live_nr_processes()) around @addr.  Looks
 * at every block of it. */
void live_look_around(const struct live *live, size_t process, uint64_t addr,
		      struct live_around *around);

#define LIVE_MAX_NEAR 1000 /* on each side */

/* Blocks on both sides of a place, from the nearest to the farthest. */
struct live_near {
	size_t wanted; /* of each side, at most LIVE_MAX_NEAR */
	const struct live_around *around;
	struct live_block *before, *after;
	size_t nr_before, nr_after;
};

/* Find up to @wanted outstanding blocks of process number @process on each side of what
 * live_look_around() put into @around, which is borrowed.  @near is to be released in any case.
 * Returns 0 or -ENOMEM. */
int live_look_near(const struct live *live, size_t process, const struct live_around *around,
		   size_t wanted, struct live_near *near);

/* Release what @near holds. */
void live_near_release(struct live_near *near);

/* The outstanding block that process @tgid was given at exactly @addr; in a child of fork that has
 * none there, its parent's.  False: there is none. */
bool live_find(const struct live *live, uint32_t tgid, uint64_t addr, struct live_block *block);

/* Does @block hold @addr?  One of no bytes holds its own. */
bool live_holds(const struct live_block *block, uint64_t addr);

#endif
