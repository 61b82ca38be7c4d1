/* shared_ring_state.h - what the recorder knows of each ring; for merge_rings.c and decode_event.c
 * alone */
#ifndef RECORD_SHARED_RING_STATE_H
#define RECORD_SHARED_RING_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"
#include "bpf/python.h"
#include "format/trace.h"
#include "record/libpreload/overrun.h"
#include "record/libpreload/ring.h"
#include "record/preload/ring/merge_rings.h"
#include "record/preload/ring/stack_image.h"

#define LAST_RINGS 1024

/* One ring: how far it was read, whose it is, and the record to be handed over next.  Positions
 * count all bytes ever written. */
struct shared_ring {
	uint64_t tail, limit;	/* what lies between may be read */
	uint64_t told_tail;	/* as the producer knows it */
	uint64_t safe;		/* all events before this time are below limit */
	uint32_t tid;		/* 0: no thread's */
	uint32_t tgid;		/* its process */
	uint32_t program;	/* as preload_process.program */
	bool named;		/* the thread's name was handed on */
	uint64_t busy_since_ns; /* 0: not */
	uint64_t time;		/* of the record at tail */
	bool based;		/* times and stack pointers have something to count from */
	uint32_t len;		/* of the record at tail, which was copied; 0: none */
	union {
		struct preload_record head;
		struct preload_alloc alloc;
	} * record;
	struct stack_image stack;
};

/* All rings of the shared memory, by number, and of these the nr_active that have a record to be
 * handed over. */
struct shared_rings {
	struct shared_rings_opts opts;
	uint64_t bad; /* events that were none */
	uint32_t nr_active;
	struct shared_ring *active[PRELOAD_MAX_RINGS];
	struct event_alloc event;
	struct {
		struct event_frames event;
		struct event_frame all[EVENT_PYTHON_FRAMES];
	} frames;
	uint16_t last_ring[LAST_RINGS]; /* of a thread's event before, by its id */
	struct shared_ring rings[PRELOAD_MAX_RINGS];
};

/* The start of a record, or a record that holds no event. */
union shared_start {
	struct preload_record record;
	struct preload_base base;
};

/* What a record in a ring may say.  What it does say is hostile. */

/* Is there a record of @type with @len bytes, which has at most @most? */
bool shared_record_fits(uint8_t type, uint32_t len, uint32_t most);

/* Hand the record of @r, which is there, over to rs->opts.event(), and before a ring's first one
 * its thread's name.  One that is no event after all is counted in rs->bad.  Returns 0, or what
 * event() returned. */
int decode_event(struct shared_rings *rs, struct shared_ring *r);

#endif
