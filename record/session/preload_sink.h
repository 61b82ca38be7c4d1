/* preload_sink.h - processes that a preloaded library tells of */
#ifndef RECORD_FOLLOWED_H
#define RECORD_FOLLOWED_H

#include "record/preload/process/preload_sink.h"
#include "record/session/session.h"

/* What takes in what happens to them; borrows @s. */
struct preload_sink followed_sink(struct session *s);

#endif
