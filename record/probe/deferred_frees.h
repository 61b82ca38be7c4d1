/* deferred_frees.h - frees that wait in the threads' slots for an allocation to ride along with
 *
 * Noted first, and taken when the rings were read past all that was there by then.
 */
#ifndef RECORD_DEFERRED_FREES_H
#define RECORD_DEFERRED_FREES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"

struct mleak_bpf;

struct kept_free {
	uint64_t id;	  /* process and thread */
	uint64_t addr;	  /* the block */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
};

/* What the slots kept at a moment; all zero: nothing. */
struct deferred_frees {
	uint64_t freed[EVENT_SLOTS], time_ns[EVENT_SLOTS];
};

/* Note what the slots of @skel keep now.  Where the rings end is to be asked after this. */
void deferred_frees_snapshot(struct deferred_frees *k, const struct mleak_bpf *skel);

/* Take the next one of those noted, from slot *@at on, that waits still, and *@at is behind it.
 * False: there is none from there on.  All that was in the rings after they were noted is to be
 * consumed before this. */
bool deferred_frees_next(const struct deferred_frees *k, const struct mleak_bpf *skel, size_t *at,
			 struct kept_free *free);

#endif
