/* process_events.h - what happened to processes at times that the events have not reached yet */
#ifndef RECORD_HAPPENINGS_H
#define RECORD_HAPPENINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/target/maps.h"
#include "record/preload/ring/preload_clock.h"
#include "record/preload/process/preload_sink.h"

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
struct happenings {
	struct happening all[HAPPENINGS_MAX]; /* ascending */
	uint32_t nr;
};

/* Is there no room for another one? */
bool happenings_full(const struct happenings *hs);

/* Room for what happened now, behind all others, for the caller to fill; it stays there until one
 * is taken out.  NULL: there is none. */
struct happening *happenings_add(struct happenings *hs);

/* The last one added did not happen; its mappings are released. */
void happenings_take_back(struct happenings *hs);

/* The earliest, which stays there; NULL: nothing. */
const struct happening *happenings_first(const struct happenings *hs);

/* Tell @sink of the earliest, which is there, at its time by @clock.  @sink may take its mappings.
 */
void happenings_tell(struct happenings *hs, const struct preload_sink *sink,
		     struct preload_clock *clock);

/* Take the earliest out, which is there; its mappings are released. */
void happenings_drop(struct happenings *hs);

/* Take all out; their mappings are released. */
void happenings_release(struct happenings *hs);

#endif
