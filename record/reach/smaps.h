/* smaps.h - where a process's resident memory is: what smaps says, and which pages are there */
#ifndef RECORD_REACH_SMAPS_H
#define RECORD_REACH_SMAPS_H

#include <stdbool.h>
#include <stddef.h>

#include "format/smaps.h"
#include "record/target/maps.h"

/* All mappings of which something is in memory or in swap. */
struct smaps {
	struct mlk_smaps *all; /* ascending */
	size_t nr, room;
	/* what these point to: */
	struct maps maps;
	struct mlk_page_run *runs;
	size_t nr_runs, room_runs;
};

/* Read @smaps_fd, a descriptor of /proc/PID/smaps, into @smaps, which is all zero.  Returns 0,
 * -ENOMEM, -ESRCH: it has no memory any more, or -errno; smaps_release() in any case. */
int smaps_read(struct smaps *smaps, int smaps_fd);

/* Find the pages of private writable mappings, by @pagemap, a descriptor of /proc/PID/pagemap.
 * *@stop ends it early, with -ECANCELED.  Returns as smaps_read(), or -E2BIG: they are in too many
 * pieces. */
int smaps_find_pages(struct smaps *smaps, int pagemap, const _Atomic bool *stop);

/* Forget all. */
void smaps_release(struct smaps *smaps);

#endif
