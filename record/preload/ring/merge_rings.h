/* merge_rings.h - events out of the rings of a preloaded library, merged in time order
 *
 * The rings lie in memory that the target writes: all of it is hostile.  A value is copied once and
 * checked; a producer that lies loses its own events, which are counted.
 */
#ifndef RECORD_MERGE_RINGS_H
#define RECORD_MERGE_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/trace.h"
#include "record/libpreload/ring.h"
#include "record/preload/ring/stack_image.h"

struct shared_rings; /* opaque */

/* The memory with the rings, and what is called with ctx: for each event, or to ask for what the
 * rings do not tell. */
struct shared_rings_opts {
	struct preload_header *memory; /* borrowed until shared_rings_free() */
	struct preload_sizes sizes;    /* as the recorder made it, whatever the memory says now */
	uint32_t stack_limit;
	/* What receives an event: a struct event_small, or an event_alloc without a stack and the
	 * @view of that, of bpf/event.h; and its time in nanoseconds, which those of no other event
	 * go below.  Negative: stop. */
	int (*event)(void *ctx, uint64_t time_ns, void *data, const struct shared_view *view);
	uint64_t (*to_ns)(void *ctx, uint64_t time); /* of the rings' clock */
	/* The id of the process in a slot of the memory's table; 0: none that is known. */
	uint32_t (*process_in)(void *ctx, uint32_t slot);
	bool (*has_ended)(void *ctx, uint32_t slot); /* or there is none */
	/* The id of the thread of process @tgid that calls itself @own; or NULL: that. */
	uint32_t (*thread_in)(void *ctx, uint32_t tgid, uint32_t own);
	/* The name of thread @tid, as it says: hostile bytes.  Before its ring's first event; or
	 * NULL. */
	void (*named)(void *ctx, uint32_t tgid, uint32_t tid, const char *name);
	void *ctx;
};

/* On success *@out is released with shared_rings_free().  Returns 0 or -ENOMEM. */
int shared_rings_new(struct shared_rings **out, const struct shared_rings_opts *opts);

/*
 * See how far the rings are filled, at the time @now of their clock, of which @margin is more than
 * a store takes to become visible.  Returns the time up to which all events are there.
 */
uint64_t shared_rings_look(struct shared_rings *rs, uint64_t now, uint64_t margin);

/* Hand over, in the order of their times, the events before @until that the last look found.
 * Returns 0, -ENOMEM, or what event() returned. */
int shared_rings_consume(struct shared_rings *rs, uint64_t until);

/* Is a ring half full by now? */
bool shared_rings_pressed(const struct shared_rings *rs);

/* Has each ring an owner?  A thread may wait for one. */
bool shared_rings_all_taken(const struct shared_rings *rs);

/* Give the rings of ended threads back: those empty whose thread @is_gone(). */
void shared_rings_give_back(struct shared_rings *rs, bool (*is_gone)(uint32_t tgid, uint32_t tid));

/* Add what found no room, or was no event, to @losses. */
void shared_rings_losses(const struct shared_rings *rs, struct mlk_losses *losses);

/* NULL is allowed; the memory stays. */
void shared_rings_free(struct shared_rings *rs);

#endif
