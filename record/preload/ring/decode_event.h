/* decode_event.h - a record out of a ring of a preloaded library into an event */
#ifndef RECORD_DECODE_EVENT_H
#define RECORD_DECODE_EVENT_H

#include "record/preload/ring/shared_ring_state.h"

/* Hand the record of @r, which is there, over to rs->opts.event(), and before a ring's first one
 * its thread's name.  One that is no event after all is counted in rs->bad.  Returns 0, or what
 * event() returned. */
int decode_event(struct shared_rings *rs, struct shared_ring *r);

#endif
