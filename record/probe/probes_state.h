/* probes_state.h - struct probes, for the files that implement probes.h */
#ifndef RECORD_PROBES_STATE_H
#define RECORD_PROBES_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "record/filter/filters.h"
#include "record/probe/links.h"
#include "record/probe/probes.h"
#include "record/probe/ring.h"
#include "record/probe/ring_making.h"

struct mleak_bpf;

/* What the slots kept at a moment; all zero: nothing. */
struct deferred_frees {
	uint64_t freed[EVENT_SLOTS], time_ns[EVENT_SLOTS];
};

/* The loaded programs, their rings, and how far these were read; owns all that it points to. */
struct probes {
	bool filtered; /* allocations or frees may be left out */
	struct filters_sweep sweep;
	struct accounts accounts;
	struct mleak_bpf *skel;
	struct ring_making *making;
	struct ring *ring;
	uint64_t paced_at, paced_ns; /* of the last probes_pace() */
	struct deferred_frees kept;
	struct ring_mark freed_end; /* where the rings ended when they were noted, */
	struct ring_mark end;	    /* and when they were consumed last */
	bool multi;
	struct placing placing;
	bool waits;   /* for the kernel, to make a link */
	bool session; /* a function's entry and return have one program */
	struct link_closer *closing;
	struct bpf_link *life[4]; /* that report exec, fork, exit and signals */
};

/* Of the programs for probes have those loaded that are used, each for its kind of links. */
void probes_choose_programs(struct probes *p);

/* They are loaded: let those that do only what is usual go on with the general one.  Returns 0 or
 * -errno. */
int probes_join_programs(struct probes *p);

#endif
