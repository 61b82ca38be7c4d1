/* progress.h - a line on the terminal while recording, and the account at the end */
#ifndef RECORD_PROGRESS_H
#define RECORD_PROGRESS_H

#include <stdbool.h>

#include "record/session/session.h"

struct progress {
	bool terminal; /* stderr is one; else nothing is shown */
	bool shown;
	uint64_t start_ns, last_ns, last_events;
};

void progress_begin(struct progress *p, uint64_t clock_now_ns);
void progress_show(struct progress *p, const struct session *s, uint64_t clock_now_ns);
void progress_end(struct progress *p);

/* Say what was recorded in @path, and which command shows it. */
void progress_summary(const struct session *s, const char *path);

#endif
