/* summary_state.h - the events of a chunk that is being filled, for summary_enc.c and copy.c */
#ifndef MLK_SUMMARY_STATE_H
#define MLK_SUMMARY_STATE_H

#include "format/record/summary.h"

/* See format/summary.h. */
struct mlk_summary {
	struct mlk_enc columns[MLK_SUM_NR]; /* those of the stacks stay empty */
	uint64_t start_ns, unit;	    /* nanoseconds */
	uint64_t first_ns, last_ns;	    /* of the first event, and the latest of all */
	uint64_t time_ns, addr, alloc_id;   /* of the record before that had one */
	struct mlk_dict threads;	    /* number of each */
	struct mlk_dict bases;		    /* number of the newest group that has it */
	struct mlk_sum_group *groups;	    /* number 1 first */
	size_t nr_groups, groups_room, nr_events, nr_allocs;
	uint32_t nr_threads;
};

#endif
