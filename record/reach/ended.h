/* ended.h - the stacks of threads that have ended, which glibc keeps for later threads */
#ifndef RECORD_REACH_ENDED_H
#define RECORD_REACH_ENDED_H

#include <stddef.h>
#include <stdint.h>

#include "format/reach.h"

/* Where nothing is in use any more. */
struct ended_area {
	uint64_t start, end;
};

/* Such areas, ascending; all zero: none. */
struct ended_stacks {
	struct ended_area *v;
	size_t nr, room;
};

/* The memory of a process: copies the @bytes at @address to @to, all or nothing.  Returns 0, or not
 * 0: they are not there. */
struct ended_memory {
	int (*read)(void *arg, uint64_t address, void *to, size_t bytes);
	void *arg;
};

/* Find them, in a process with the mappings @ranges, which ascend.  What does not look like glibc's
 * (2.34 or later) has none.  @stacks is to be released in any case.  Returns 0 or -ENOMEM. */
int ended_find(struct ended_stacks *stacks, const struct ended_memory *memory,
	       const struct mlk_range *ranges, size_t nr);

/* Forget them. */
void ended_release(struct ended_stacks *stacks);

#endif
