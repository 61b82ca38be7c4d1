/* snapshots.h - the passes that a trace has: of each process the last snapshot that is complete, or
 * where none is the last one */
#ifndef REPORT_SNAPSHOTS_H
#define REPORT_SNAPSHOTS_H

#include "format/reader.h"

/* A snapshot; its passes ascend, and own what they point to. */
struct snapshot {
	uint32_t tgid;
	struct mlk_pass *passes;
	size_t nr, room;
	uint64_t begin_ns, end_ns; /* of its first pass, of its last one */
	bool complete;
};

/* All zero: there are none. */
struct snapshots {
	struct snapshot *all; /* one of each process; after snapshots_find() by tgid */
	size_t nr, room;
	struct snapshot next; /* that is not complete yet */
	uint64_t later_ns;    /* end of the first pass that was too late; 0: none was */
};

/* Find them in @trace: those that ended by @stop_ns, CLOCK_MONOTONIC.  To be released in any case.
 * Returns 0, -ENOMEM or -errno of read(2). */
int snapshots_find(struct snapshots *s, struct mlk_reader *trace, uint64_t stop_ns);

/* Forget them. */
void snapshots_release(struct snapshots *s);

#endif
