/* lifetimes.h - which processes a trace has, and from when to when each ran */
#ifndef REPORT_LIFETIMES_H
#define REPORT_LIFETIMES_H

#include <stddef.h>

#include "format/reader.h"

#define LIFETIMES_UNKNOWN UINT64_MAX /* in place of a time */

/* A process, from its beginning to its end. */
struct lifetime {
	uint32_t tgid;
	uint64_t from_ns; /* CLOCK_MONOTONIC, or LIFETIMES_UNKNOWN: before it was recorded */
	uint64_t to_ns;	  /* the same, or LIFETIMES_UNKNOWN: later, or it was not seen */
};

/* Those of a number that the kernel gave twice are two. */
struct lifetimes {
	struct lifetime *all;
	size_t nr, room;
	size_t last; /* the one that was noted last: mostly the next one, too */
};

/* The process that @meta describes, and no other yet.  *@out is NULL on failure.  Returns 0 or
 * -ENOMEM. */
int lifetimes_new(struct lifetimes **out, const struct mlk_meta *meta);

/* Note what @record, an event or a thread's name, says.  Returns 0 or -ENOMEM. */
int lifetimes_note(struct lifetimes *lifetimes, const struct mlk_record *record);

/* Release @lifetimes; NULL is allowed. */
void lifetimes_free(struct lifetimes *lifetimes);

#endif
