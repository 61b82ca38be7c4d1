/* preload_sink.h - what receives the events and the processes that a preloaded library reports */
#ifndef RECORD_PRELOAD_SINK_H
#define RECORD_PRELOAD_SINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/target/maps.h"

struct shared_view;

/* What the events and mappings are handed to, in the order of their times. */
struct preload_sink {
	/* As struct shared_rings_opts has it; every event has a time, CLOCK_MONOTONIC in
	 * nanoseconds. */
	int (*event)(void *ctx, uint64_t time_ns, void *data, const struct shared_view *view);
	/* Thread @tid of @pid says that this is its name. */
	void (*named)(void *ctx, pid_t pid, uint32_t tid, const char *name);
	/* Process @pid, started by @parent, is about to be recorded too.  False: it is not to be.
	 */
	bool (*met)(void *ctx, pid_t pid, pid_t parent);
	/* One that was met is not to be recorded after all. */
	void (*unmet)(void *ctx, pid_t pid);
	/* Read all mappings of @pid, which was not met yet, into @maps, empty.  False: that failed.
	 */
	bool (*read_all_maps)(void *ctx, pid_t pid, struct maps *maps);
	/* Where in @pid is something that is elsewhere in each program?  0: it cannot be said. */
	uint64_t (*start_of)(void *ctx, pid_t pid);
	/* Read the executable mappings of @pid, identified, into @maps, empty.  False: that failed.
	 */
	bool (*read_maps)(void *ctx, pid_t pid, struct maps *maps);
	/* The following calls report @pid at @time_ns, in the order of events.  One that was met:
	 * its events come from now on, and these are mapped; they may be removed from @maps. */
	void (*came)(void *ctx, uint64_t time_ns, pid_t pid, struct maps *maps);
	/* From now on these are mapped; they may be removed from @maps. */
	void (*mapped)(void *ctx, uint64_t time_ns, pid_t pid, struct maps *maps);
	/* It has ended, and no event of it comes any more. */
	void (*ended)(void *ctx, uint64_t time_ns, pid_t pid);
	void *ctx;
};

#endif
