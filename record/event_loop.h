/* event_loop.h - wait for events, signals, the target's end and the time's end, and act on each */
#ifndef RECORD_EVENT_LOOP_H
#define RECORD_EVENT_LOOP_H

#include "record/control/server.h"
#include "record/output.h"
#include "record/session/session.h"
#include "record/switch.h"

/* What ends a recording besides the target, and how large the ring is that fills meanwhile. */
struct event_loop_opts {
	uint64_t duration_ns; /* 0: until something else ends it */
	uint64_t max_size;    /* bytes of the trace; 0: no limit */
	uint32_t ring_size;   /* bytes that may wait for us */
	struct switcher *switcher;
	struct control *control; /* by which it is asked, or not open */
	bool reach;		 /* at the end the pointers in memory are taken */
	uint64_t reach_ns;	 /* and each time after this; 0: not before the end */
	bool reach_spare;	 /* or later: it is to take a tenth of the time at most */
};

/*
 * With signals_block() done, record until the target ends, a signal asks to stop, the time is over
 * or an error came up (s->err). A command that we started is passed SIGTERM and SIGHUP and goes on;
 * the first SIGINT and SIGQUIT are left to it alone, because the terminal sent it one too; the
 * second ends the recording. Returns why it ended.
 */
enum mlk_end event_loop_run(struct session *s, const struct event_loop_opts *opts);

/* A line on the terminal while recording, and the account at the end: progress.c. */
struct progress {
	bool terminal; /* stderr is one; else nothing is shown */
	uint64_t start_ns, last_ns, last_events;
};

/* From @now_ns on, when the recording began, show how it goes, if stderr is a terminal: each time
 * that progress_show() is called, until log_end_line() takes the line away. */
void progress_begin(struct progress *p, uint64_t now_ns);
void progress_show(struct progress *p, const struct session *s, uint64_t now_ns);

/* Likewise of a snapshot of the pointers in memory, once a second: for what calls it more often. */
void progress_show_reach(struct progress *p, const struct session *s, uint64_t now_ns);

/* Say what was recorded to @out, and which command shows it. */
void progress_summary(const struct session *s, const struct output *out);

#endif
