/* residence.h - the resident memory of each process, as a trace has it */
#ifndef REPORT_RESIDENCE_H
#define REPORT_RESIDENCE_H

#include "format/reader.h"

/* A mapping of which something is in memory or in swap. */
struct residence_mapping {
	uint64_t start, end;
	uint32_t perms; /* enum mlk_perm */
	char *path;	/* "" for anonymous memory */
	uint64_t value[MLK_SMAPS_NR];
	size_t first_run, nr_runs; /* of the process's */
};

/* What one process had in memory at a moment. */
struct residence {
	uint32_t tgid, snapshot;
	uint64_t time_ns;		    /* CLOCK_MONOTONIC */
	struct residence_mapping *mappings; /* ascending */
	size_t nr, room;
	struct mlk_page_run *runs; /* ascending within a mapping */
	size_t nr_runs, room_runs;
	/* What a walk through the allocator's memory found, ascending; whole: all of it. */
	struct mlk_heap_block *pieces;
	size_t nr_pieces, room_pieces;
	bool whole, trims; /* trims: it is glibc's malloc alone */
	uint64_t *stacks;  /* stack pointers of threads, as far as they are known; ascending */
	size_t nr_stacks, room_stacks;
};

/* Of all processes. */
struct residences {
	struct residence *all;
	size_t nr, room;
};

/* Read the last snapshot of each process in @trace that was taken up to @stop_ns; @r is to be
 * released in any case.  Returns 0, -ENOMEM or -errno of read(2). */
int residences_find(struct residences *r, struct mlk_reader *trace, uint64_t stop_ns);

/* The records of a trace that say it. */
#define RESIDENCE_RECORDS (MLK_RECORD_SMAPS | MLK_RECORD_PASS | MLK_RECORD_HEAP)

/* Take in one of them, of a trace that can be read but once: the last snapshot of each process is
 * kept, as far as it came.  Returns 0 or -ENOMEM. */
int residences_note(struct residences *r, const struct mlk_record *record);

/* To be called after the last of them. */
void residences_sort(struct residences *r);

/* Forget those whose mappings came; of others they are still to come. */
void residences_drop_whole(struct residences *r);

/* The moment of the last one; 0: there is none. */
uint64_t residences_time(const struct residences *r);

/* Forget all. */
void residences_release(struct residences *r);

#endif
