/* exec.h - another program in a process under recording */
#ifndef RECORD_EXEC_H
#define RECORD_EXEC_H

#include "bpf/event.h"
#include "record/session/session.h"

/* The ring says that @p executed another program at @time_ns; @links_dead: not by its main thread.
 */
void exec_note(struct session *s, struct process *p, uint64_t time_ns, bool links_dead);

/* If the program that @p runs is new to the probes, and its libraries are mapped, make sure that
 * the probes are where it allocates.  On the same files they still are. */
void exec_follow(struct session *s, struct process *p);

/* @p, which is held, begins another program.  Is that to be held again when its libraries are
 * mapped? Not one that allocates by what is probed, as is known of it. */
bool exec_wants_start(const struct session *s, const struct process *p);

/* The program that @p runs is held with its libraries mapped: attach its probes. */
void exec_at_start(struct session *s, pid_t pid);

/* No more events of the program come: was it one that could not be examined? */
void exec_judge(struct session *s, struct process *p);

#endif
