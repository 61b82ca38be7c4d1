/* session_sink.h - processes that a preloaded library reports */
#ifndef RECORD_SESSION_SINK_H
#define RECORD_SESSION_SINK_H

#include "record/preload/process/preload_sink.h"
#include "record/session/session.h"

/* What takes in what happens to them; borrows @s. */
struct preload_sink session_sink(struct session *s);

#endif
