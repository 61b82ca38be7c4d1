/* walk.h - one pass through the writable memory of a process, which goes on meanwhile */
#ifndef RECORD_REACH_WALK_H
#define RECORD_REACH_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/reach.h"

struct frozen;
struct mlk_mapping;

/* What is walked through, and who gets the words. */
struct reach_walk {
	int mem, pagemap;	  /* /proc/PID/mem and /proc/PID/pagemap, open for reading */
	struct mlk_range *ranges; /* ascending; absent and unread are set */
	size_t nr;
	/* Take @nr words, behind those of the call before.  Returns 0, or -errno to end it. */
	int (*sink)(void *arg, const struct mlk_pointer *words, size_t nr);
	void *arg;
	const struct frozen *frozen; /* a copy to read in place of those files; NULL: none */
	const _Atomic bool *stop;    /* end it early, with -ECANCELED; NULL: never */
	uint64_t words;		     /* given to the sink, set by reach_walk_run() */
};

/* The ranges of a process, from its mappings @maps (@nr): what is writable, and what may have
 * been so before it was made read-only.  *@ranges is to be freed; the paths are
 * borrowed.  Returns 0 or
 * -ENOMEM. */
int reach_ranges(const struct mlk_mapping *maps, size_t nr, struct mlk_range **ranges,
		 size_t *nr_ranges);

/* Walk, in any thread.  Returns 0; -ESRCH: the process has no memory any more; -ENOMEM, or what the
 * sink returned. */
int reach_walk_run(struct reach_walk *w);

#endif
