/* process_events.h - what happened to processes at times that their events have not reached yet */
#ifndef RECORD_PRELOAD_PROCESS_EVENTS_H
#define RECORD_PRELOAD_PROCESS_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/target/maps.h"

#define HAPPENINGS_MAX 1024u

/* What happened: a process joined the recording, its mappings changed, or it ended. */
enum happening_kind { HAPPENING_CAME, HAPPENING_MAPPED, HAPPENING_ENDED };

/* That, to which process, and when. */
struct happening {
	enum happening_kind kind;
	uint32_t slot;
	pid_t pid;
	uint64_t time;	  /* in the clock's unit */
	struct maps maps; /* owned */
};

/* All zero: nothing happened. */
struct process_events {
	struct happening all[HAPPENINGS_MAX]; /* ascending */
	uint32_t nr;
};

/* Is there no room for another one? */
bool process_events_full(const struct process_events *hs);

/* Add @h, the latest, without maps.  NULL: there is no room. */
struct happening *process_events_add(struct process_events *hs, const struct happening *h);

/* The last one added did not happen, or will not be applied. */
void process_events_withdraw(struct process_events *hs);

/* The first one was applied. */
void process_events_drop_first(struct process_events *hs);

/* @pid has generated code that is among @now, its mappings: it is to be in all that were read of it
 * before.  Returns 0 or -ENOMEM. */
int process_events_add_code(struct process_events *hs, pid_t pid, const struct maps *now);

#endif
