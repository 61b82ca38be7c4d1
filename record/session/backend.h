/* backend.h - a source of events, as the session sees it */
#ifndef RECORD_SESSION_BACKEND_H
#define RECORD_SESSION_BACKEND_H

#include <stdbool.h>

#include "format/trace.h"
#include "record/filter/choice.h"

struct process;
struct session;
struct session_opts;

/* Where the events come from: BPF probes, the library that the command was started with, or code
 * that was put into a process; or nothing but a look at the memory. */
struct backend {
	const char *name; /* as the trace has it */
	bool probes;	  /* the processes' functions are probed */
	/* Look at the processes, and have their events come; as session_start(). */
	int (*start)(struct session *s, const struct session_opts *opts);
	/* Let the command run, if there is one. */
	void (*go)(struct session *s);
	/* The @i-th descriptor that is readable when much is waiting; -1: there are no more. */
	int (*fd)(const struct session *s, int i);
	/* Take in what is waiting; as session_drain(). */
	bool (*consume)(struct session *s);
	/* Add what was lost so far to @losses; at the end, say what of it has a reason. */
	void (*losses)(const struct session *s, struct mlk_losses *losses);
	void (*explain_losses)(const struct session *s);
	/* Say why not one event came of @p. */
	void (*explain)(const struct session *s, const struct process *p);
	/* Nothing is recorded any more; what is waiting can still be consumed. */
	void (*stop)(struct session *s);
	/* Record or only count from now on what @choice says.  Returns 0, or -errno after the
	 * sentence at @why, CHOICE_WHY bytes, was set.  NULL, as the next: not with this backend.
	 */
	int (*choose)(struct session *s, const struct choice *choice, char *why);
	/* What is chosen now. */
	void (*count_choices)(const struct session *s, struct choice_counts *counts);
};

extern const struct backend backend_bpf, backend_preload, backend_inject, backend_look;

#endif
