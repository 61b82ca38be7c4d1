/* children.h - processes that are forked by those recorded */
#ifndef RECORD_CHILDREN_H
#define RECORD_CHILDREN_H

#include "record/session/session.h"

/* A notice says that a thread or process was started. */
void children_on_fork(struct session *s, const struct sideband_fork *fork);

/* The ring says that @parent forked @pid at @time_ns: its events may come from now on.  Returns
 * what the writer returned. */
int children_announce(struct session *s, pid_t parent, pid_t pid, uint64_t time_ns);

/* @pid is held before its first instruction: attach its probes. */
void children_held(struct session *s, pid_t pid);

/* Attach the probes of those that were not stopped so far, and let those go that are ready. */
void children_look(struct session *s);

/* @p, a child, has ended before its probes were in. */
void children_missed(struct session *s, const struct process *p);

#endif
