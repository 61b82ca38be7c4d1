/* frozen.h - a copy of a process's memory of one moment, which freeze.h makes */
#ifndef RECORD_REACH_FROZEN_H
#define RECORD_REACH_FROZEN_H

#include <stdbool.h>
#include <stddef.h>

#include "format/reach.h"
#include "record/reach/freeze.h"
#include "record/target/maps.h"

/* Such a copy, and room for one; all zero but fd, -1: none. */
struct frozen {
	int fd;
	uint64_t room;
	void *at; /* the whole file; NULL: it is not there yet */
	size_t bytes;
	const struct freeze_header *header;
	const struct freeze_run *runs;
	size_t nr_runs;
};

/* In any thread: how much room a copy takes of what @ranges have now, by @pagemap,
 * /proc/PID/pagemap open for reading, and some more; make it.  Returns 0; -EFBIG: that is more than
 * half of the memory that is available; -ENOMEM, or -errno. */
int frozen_prepare(struct frozen *f, int pagemap, const struct mlk_range *ranges, size_t nr);

/* Stop @t for a copy.  Returns as freeze_take(). */
int frozen_take(struct frozen *f, const struct target *t);

/* Its mappings, into @maps.  Returns 0 or -ENOMEM. */
int frozen_maps(const struct frozen *f, struct maps *maps);

/* Its threads; borrowed. */
const struct mlk_reach_thread *frozen_threads(const struct frozen *f, size_t *nr);

/* The words of @run; borrowed. */
static inline const uint64_t *frozen_words(const struct frozen *f, const struct freeze_run *run)
{
	return (const uint64_t *)(const void *)((const char *)f->at + run->at);
}

/* Forget it, and its room. */
void frozen_release(struct frozen *f);

#endif
