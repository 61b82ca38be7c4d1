/* follow.h - replay a trace while it is being written
 *
 * What was mapped where is read as soon as it is there.  Events wait a moment, because the mappings
 * that their stacks need may stand behind them.  Nothing is read twice.  Memory: live blocks,
 * stacks, and what a pipe holds of the trace; of processes that have ended, if so wanted, only some
 * are kept.
 */
#ifndef REPORT_FOLLOW_H
#define REPORT_FOLLOW_H

#include "format/reader.h"
#include "report/replay/replay.h"

struct follow; /* opaque */

/* How far follow_step() has come, which is no error. */
enum follow_state {
	FOLLOW_ENDED, /* there will be no more */
	FOLLOW_IDLE,  /* all is taken in that is there, or will be in a moment */
	FOLLOW_BUSY,  /* more is there */
};

/* Called with @arg for each event before the replay takes it in; its stack is @id in the unwinder
 * if it is an ALLOC.  Returns 0, or an error for follow_step() to return. */
typedef int follow_event_fn(void *arg, const struct mlk_event *event, uint32_t id);

/* What follow_new() is to do; @replay is not used for batches, progress or threads. */
struct follow_opts {
	struct replay_opts replay;
	follow_event_fn *event; /* or NULL */
	void *arg;
	unsigned int records; /* that @note is called with, too, before the events around them */
	int (*note)(void *arg, const struct mlk_record *record); /* returns as @event */
	size_t keep_ended; /* processes that have ended: see replay_forget_ended(); 0: all */
	void (*forgot)(void *arg, uint32_t stack); /* for that, or NULL */
	void *forgot_arg;
};

/* Begin with @trace, which is borrowed until follow_free().  *@out is NULL on failure.  Returns 0,
 * -ENOMEM or -errno of a system call. */
int follow_new(struct follow **out, struct mlk_reader *trace, const struct follow_opts *opts);

/* Take in some of what is there, at the time @now_ns, CLOCK_MONOTONIC; it does not wait.  Returns
 * enum follow_state, -ENOMEM, the -errno of read(2), or what opts->event returned. */
int follow_step(struct follow *f, uint64_t now_ns);

/* What is known so far; valid until follow_free().  Its counts of stacks are those of struct
 * stack's now, allocated and freed. */
struct replay *follow_replay(const struct follow *f);

/* Time of the last event that was taken in, CLOCK_MONOTONIC; 0: none was. */
uint64_t follow_last_ns(const struct follow *f);

/* Since when events are recorded, as far as is known: the set-up is before that. */
uint64_t follow_begun_ns(const struct follow *f);

/* Up to when all events are taken in, as far as can be said at @now_ns: a recorder keeps the latest
 * for a moment, and so does this. */
uint64_t follow_known_ns(const struct follow *f, uint64_t now_ns);

/* Release @f; NULL is allowed. */
void follow_free(struct follow *f);

#endif
