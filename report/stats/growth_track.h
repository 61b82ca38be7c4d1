/* growth_track.h - what growth.h keeps of one stack while a trace is replayed
 *
 * Most stacks allocate in few slices of the time and their blocks have few ages, and there may be
 * hundreds of thousands of them.  So only slices and ages that were met are kept.
 */
#ifndef REPORT_GROWTH_TRACK_H
#define REPORT_GROWTH_TRACK_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "report/base/pool.h"
#include "report/stats/replaced.h"

#define GROWTH_SLICES	 REPLACED_SLICES
#define GROWTH_LIFETIMES 45 /* powers of two in microseconds: up to a year */
#define GROWTH_PART_BITS 3  /* of each of these equal parts: */
#define GROWTH_PARTS	 (1 << GROWTH_PART_BITS)

/* Of one slice of the time. */
struct growth_slice {
	uint64_t bytes;	      /* outstanding at its end, or now */
	uint64_t most;	      /* most that was outstanding within it */
	uint32_t given, gone; /* blocks, by slice of allocation */
};

/* Blocks that lived less than 2^i us, and not less than half of it. */
struct growth_age {
	uint64_t blocks;
	uint8_t parts[GROWTH_PARTS]; /* shares of them that lived so long */
};

/* All zero is nothing; slices and ages are in the order of their numbers, in memory of the pool
 * that all calls are given. */
struct growth_track {
	uint64_t blocks;   /* allocated */
	uint64_t ages_met; /* a bit for each of the ages there are */
	uint32_t met;	   /* the same of slices; in others nothing changed */
	uint8_t last;	   /* the last slice that was met */
	uint8_t nr, slices_room, ages_room;
	struct growth_slice *slices;
	struct growth_age *ages;
};

/* For growth_track_slice(): a slice that is not the last one that was met. */
struct growth_slice *growth_track_meet(struct growth_track *track, struct pool *pool, size_t at);

/* Slice @at of @track, valid until the next call with it; NULL: no memory. */
static inline struct growth_slice *growth_track_slice(struct growth_track *track, struct pool *pool,
						      size_t at)
{
	return at == track->last && track->nr ? &track->slices[track->nr - 1]
					      : growth_track_meet(track, pool, at);
}

/* @more bytes, modulo 2^64, are outstanding in slice @at; or in the last one that was met, if that
 * is later.  Returns 0 or -ENOMEM. */
static inline int growth_track_add(struct growth_track *track, struct pool *pool, size_t at,
				   uint64_t more)
{
	struct growth_slice *slice =
		growth_track_slice(track, pool, at > track->last ? at : track->last);

	if (!slice)
		return -ENOMEM;
	slice->bytes += more;
	if (slice->bytes > slice->most)
		slice->most = slice->bytes;
	return 0;
}

/* Bytes that it points to. */
static inline size_t growth_track_bytes(const struct growth_track *track)
{
	return track->slices_room * sizeof(*track->slices) +
	       track->ages_room * sizeof(*track->ages);
}

/* @blocks of it were freed, @us microseconds old.  Returns 0 or -ENOMEM. */
int growth_track_freed(struct growth_track *track, struct pool *pool, uint64_t us, uint64_t blocks);

/* Make one slice of two.  The last one may get only its first half: the rest is to come. */
void growth_track_widen(struct growth_track *track);

/* Slice @at, also if nothing changed in it. */
struct growth_slice growth_track_at(const struct growth_track *track, size_t at);

/* Blocks that were freed at an age of class @i; all zero of one that none had. */
struct growth_age growth_track_age(const struct growth_track *track, size_t i);

/* How many of the ages that blocks of it had are of the first @nr classes. */
size_t growth_track_ages(const struct growth_track *track, size_t nr);

#endif
