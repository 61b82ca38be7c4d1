/* write_events.h - from the rings' events to the trace's */
#ifndef RECORD_WRITE_EVENTS_H
#define RECORD_WRITE_EVENTS_H

#include "record/session/session.h"

/* An event from the rings, for probes_set_consumer() with the session as context.  Returns 0,
 * -EAGAIN when it is time to check other things, or another -errno, which s->journal.err has too.
 */
int write_event(void *ctx, void *data, size_t size);

struct shared_view;

/* The same for one that a preloaded library made at @time_ns, whatever its kind. */
int write_event_at(void *ctx, uint64_t time_ns, void *data, const struct shared_view *view);

/* Take the frees that probes_note_freed() noted.  What goes wrong is in s->journal.err. */
void write_deferred_frees(struct session *s);

#endif
