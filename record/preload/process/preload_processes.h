/* preload_processes.h - the processes that write into the memory shared with a preloaded library
 *
 * They claim slots with their own pids.  One is believed when the kernel says that it has mapped
 * that very memory, which it can have from its parent or from the recorder alone.
 */
#ifndef RECORD_PRELOAD_PROCESSES_H
#define RECORD_PRELOAD_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/libpreload/ring.h"
#include "record/preload/process/facts.h"
#include "record/preload/ring/preload_clock.h"
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
	/* Read all mappings of @pid, which was not met yet, into @maps, empty.  Returns 0 or
	 * -errno. */
	int (*read_all_maps)(void *ctx, pid_t pid, struct maps *maps);
	/* Where in @pid is something that is elsewhere in each program?  0: it cannot be said. */
	uint64_t (*start_of)(void *ctx, pid_t pid);
	/* Open the file of the program that @pid runs, as O_PATH, to be closed; or -errno. */
	int (*open_program)(void *ctx, pid_t pid);
	/* What Go's runtime in @pid is like, whose mappings were read; go->on is not 0 if it is a
	 * Go program. */
	void (*golang)(void *ctx, pid_t pid, struct event_go *go);
	/* Read the executable mappings of @pid, identified, into @maps, empty.  False: that failed.
	 */
	bool (*read_maps)(void *ctx, pid_t pid, struct maps *maps);
	/* The following calls report @pid at @time_ns, in the order of events.  One that was met:
	 * its events come from now on, and these are mapped; they may be removed from @maps. */
	void (*came)(void *ctx, uint64_t time_ns, pid_t pid, struct maps *maps);
	/* From now on these are mapped; they may be removed from @maps. */
	void (*mapped)(void *ctx, uint64_t time_ns, pid_t pid, struct maps *maps);
	/* It may have generated code since @time_ns, which is now among @maps, its mappings.  Comes
	 * as soon as that is found. */
	void (*generated)(void *ctx, uint64_t time_ns, pid_t pid, const struct maps *maps);
	/* It has ended, and no event of it comes any more. */
	void (*ended)(void *ctx, uint64_t time_ns, pid_t pid);
	void *ctx;
};

struct preload_processes; /* opaque */

/* Where the processes are found, whom they are reported to, and which are let in. */
struct preload_processes_opts {
	struct preload_header *memory; /* borrowed, as all here */
	const struct facts *facts;
	const struct preload_sink *sink; /* may be filled later */
	struct preload_clock *clock;
	int fd;	     /* of the memory */
	bool follow; /* others than the command are let in */
};

/* On success *@out is released with preload_processes_free().  Returns 0 or -errno. */
int preload_processes_new(struct preload_processes **out,
			  const struct preload_processes_opts *opts);

/* The command is process @pid.  Returns 0 or -errno: then it cannot be recorded. */
int preload_processes_start(struct preload_processes *ps, pid_t pid);

/* Let the command run. */
void preload_processes_go(struct preload_processes *ps);

/* Find new processes, ended ones, and those whose mappings are to be read.  What happened counts
 * from now, which is after all events of those that ended, and before all of those that came; but
 * generated code from @taken_ns, up to which all events were handed over. */
void preload_processes_look(struct preload_processes *ps, uint64_t taken_ns);

/* Find code that was generated after preload_processes_look(): events that came meanwhile may have
 * it in their stacks. */
void preload_processes_find_code(struct preload_processes *ps, uint64_t taken_ns);

/* When the earliest happened that was found and not applied yet, in the clock's unit; UINT64_MAX:
 * nothing. */
uint64_t preload_processes_next(const struct preload_processes *ps);

/* All events before that were handed over: hand it over, too. */
void preload_processes_apply(struct preload_processes *ps);

/* Have all ended, and may none come any more? */
bool preload_processes_over(const struct preload_processes *ps);

/* The process in slot @slot; 0: none that is known. */
uint32_t preload_processes_in(const struct preload_processes *ps, uint32_t slot);

/* Has the process of @slot ended, or is there none? */
bool preload_processes_ended(const struct preload_processes *ps, uint32_t slot);

/* Is no process @pid recorded any more? */
bool preload_processes_gone(const struct preload_processes *ps, pid_t pid);

/* Wake all that wait for an answer. */
void preload_processes_wake(struct preload_processes *ps);

/* Programs begun by exec in which the library did not start, and processes that found no place or
 * could not be recorded. */
uint64_t preload_processes_lost(const struct preload_processes *ps);

/* Warn of each of those whose name is known, once, when nothing is recorded any more. */
void preload_processes_tell_lost(struct preload_processes *ps);

/* Mappings that could not be examined. */
uint64_t preload_processes_maps_lost(const struct preload_processes *ps);

/* Processes that ended without a check of the guard bytes of their blocks; *@first: the command is
 * one of them. */
uint64_t preload_processes_unlooked(const struct preload_processes *ps, bool *first);

/* NULL is allowed. */
void preload_processes_free(struct preload_processes *ps);

#endif
