/* process_events.h - what happened to processes at times that the events have not reached yet */
#ifndef RECORD_PROCESS_EVENTS_H
#define RECORD_PROCESS_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/preload/process/preload_sink.h"
#include "record/preload/ring/preload_clock.h"
#include "record/target/maps.h"

#define HAPPENINGS_MAX 1024u

enum happening_kind { HAPPENING_CAME, HAPPENING_MAPPED, HAPPENING_ENDED };

struct happening {
	enum happening_kind kind;
	uint32_t slot;
	pid_t pid;
	uint64_t time; /* in the clock's unit */
	struct maps maps;
};

/* All zero: nothing happened. */
struct process_events {
	struct happening all[HAPPENINGS_MAX]; /* ascending */
	uint32_t nr;
};

/* Is there no room for another one? */
bool process_events_full(const struct process_events *hs);

/* Room for what happened now, behind all others, for the caller to fill; it stays there until one
 * is removed.  NULL: there is none. */
struct happening *process_events_add(struct process_events *hs);

/* The last one added did not happen; its mappings are released. */
void process_events_withdraw(struct process_events *hs);

/* The earliest, which stays there; NULL: nothing. */
const struct happening *process_events_first(const struct process_events *hs);

/* Report the earliest to @sink, which is there, at its time by @clock.  @sink may take its
 * mappings.
 */
void process_events_report(struct process_events *hs, const struct preload_sink *sink,
			   struct preload_clock *clock);

/* Take the earliest out, which is there; its mappings are released. */
void process_events_drop(struct process_events *hs);

/* Take all out; their mappings are released. */
void process_events_release(struct process_events *hs);

#endif
